/// The names under which the app's tokens are kept.
public enum TokenKey: String, CaseIterable, Sendable {
    /// The access token, which is sent with each call and lives half an hour.
    case accessToken = "ce.access_token"
    /// The refresh token, which gets the next pair and is spent by it.
    case refreshToken = "ce.refresh_token"
}

/// Where the app keeps its tokens: the Keychain on iOS (docs/app.md shows one), ``InMemoryTokenStore`` elsewhere.
///
/// The calls are synchronous, so that ``AccountClient`` decides and stores in one step that nothing comes between. They
/// are made one at a time, in the order of the client's decisions.
public protocol TokenStore: Sendable {
    /// The token kept under a name, or nil where there is none.
    func load(_ key: TokenKey) throws -> String?
    /// Keeps a token under a name, in the place of an earlier one.
    func save(_ token: String, for key: TokenKey) throws
    /// Forgets the token under a name; it is no error when there is none.
    func remove(_ key: TokenKey) throws
}
