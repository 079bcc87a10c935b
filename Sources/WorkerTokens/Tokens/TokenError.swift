/// Why there is no token, and what to do.
///
/// Its texts never contain a token or the credential.
public enum TokenError: Error, Hashable, Sendable {
    /// The user must sign in with Google again. Stop until a notice says that the account is connected. The reason is a
    /// code of docs/services.md, or nil.
    case signInAgain(reason: String?)
    /// An administrator or a policy blocks the account. The worker tries once a day, and a notice says when it works.
    case suspended(reason: String?)
    /// The user has not granted these scopes: ask for them.
    case missingScopes([String])
    /// The user is not stored, has no grant, or has no such connection.
    case unknownUser
    /// There is no token now: ask again after these seconds. The reason is for your log: a code of the worker, or `http_`
    /// and the status of something in between.
    case tryAgain(after: Double, reason: String?)
    /// The service's entry in the services file does not allow this. The message says which member of it.
    case forbidden(message: String)
    /// The worker does not know the credential.
    case unknownCredential
    /// The request is wrong. The library or the worker refused it.
    case invalidRequest(message: String)
    /// The worker's key ring lacks the key of the stored token: the runbook's `keys_missing` says what to do.
    case unreadableToken
    /// The response is not one of a worker. Look at what is between: the address, a proxy.
    case unreadableResponse(status: Int)
    /// The transport failed, with the text of its error.
    case unreachable(description: String)
    /// The address, the path of the socket or the credential cannot be used.
    case invalidConfiguration(message: String)
    /// The calling task was cancelled.
    case cancelled
}

extension TokenError: CustomStringConvertible {
    /// The problem in one sentence.
    public var description: String {
        switch self {
        case .signInAgain(let reason): "The user must sign in with Google again\(Self.inBrackets(reason))."
        case .suspended(let reason): "An administrator or a policy blocks the account\(Self.inBrackets(reason))."
        case .missingScopes(let scopes): "The user has not granted \(scopes.joined(separator: ", "))."
        case .unknownUser: "The worker has no such user, no grant of the user, or no such connection."
        case .tryAgain(let seconds, let reason):
            "The worker has no token now\(Self.inBrackets(reason)). Ask again after \(seconds) seconds."
        case .forbidden(let message): "The services file does not allow it: \(message)."
        case .unknownCredential: "The worker does not know the service's credential."
        case .invalidRequest(let message): "The request is wrong: \(message)."
        case .unreadableToken: "The worker's key ring lacks the key of the stored token."
        case .unreadableResponse(let status): "The response with the status \(status) is not one of a worker."
        case .unreachable(let description): "The worker could not be reached: \(description)."
        case .invalidConfiguration(let message): message
        case .cancelled: "The call was cancelled."
        }
    }

    private static func inBrackets(_ reason: String?) -> String {
        guard let reason else { return "" }
        return " (\(reason))"
    }
}
