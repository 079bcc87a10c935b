/// A command of the program, with everything that only this command needs.
package enum Command: Equatable, Sendable {
    /// The daemon, or one pass over the due grants when the configuration says `run-once`.
    case work
    case listGrants(GrantListOptions)
    case showGrant(user: String, isJSON: Bool)
    case showHistory(user: String, isJSON: Bool)
    case retryGrants(GrantRetryOptions)
    case setClient(from: String, to: String, isJSON: Bool)
    /// If the token file is `nil`, the token is read from standard input.
    case addGrant(user: String, tokenFile: String?, clientID: String?, isJSON: Bool = false)
    case importGrants(GrantImportOptions)
    case importUsers(UserImportOptions)
    case listUsers(isJSON: Bool)
    case showUser(user: String, isJSON: Bool)
    case deleteUser(user: String, isJSON: Bool)
    case exportGrants(isPlaintext: Bool)
    case disconnectGrant(user: String, isJSON: Bool)
    case vendToken(user: String, minimumLifetime: Duration, isJSON: Bool = false)
    case generateKeys(isLost: Bool = false, isJSON: Bool = false)
    case listKeys(isJSON: Bool = false)
    case rotateKeys(isJSON: Bool = false)
    case retireKey(id: String, isLost: Bool, isJSON: Bool = false)
    case replayNotices(user: String?, within: Duration, isJSON: Bool = false)
    case manageGoogleEvents(GoogleEventsOptions)
    case makeCredential(service: String, isOperator: Bool = false, isJSON: Bool = false)
    case makeHandle(service: String, user: String, isJSON: Bool = false)
    case showStatus(isJSON: Bool)
    case watchStatus(isJSON: Bool)
    case examine(isJSON: Bool = false)
    case backUp(file: String, isJSON: Bool = false)
    /// Both are a path, an address or `url-file:FILE`.
    case copyStore(from: String, to: String, isJSON: Bool = false)
    case recoverResults(file: String, isJSON: Bool = false)
    case showVersion(isJSON: Bool = false)
    /// The text is ready to print.
    case showHelp(text: String)
}
