/// What Google's SDK gave the app for a user, on its way to the backend; it never prints.
public struct GoogleTokens: Encodable, Hashable, Sendable {
    private let accessToken: String
    private let refreshToken: String?
    private let expiresIn: Int?
    private let scopes: [String]?
    private let email: String?

    /// Gathers what the SDK gave; the backend asks Google for what is left out.
    ///
    /// - Parameters:
    ///   - accessToken: `user.accessToken.tokenString`.
    ///   - refreshToken: `user.refreshToken.tokenString`; without it the backend keeps the one it has for this account.
    ///   - expiresIn: The seconds that the access token has left.
    ///   - scopes: `user.grantedScopes`.
    ///   - email: `user.profile?.email`.
    public init(
        accessToken: String,
        refreshToken: String? = nil,
        expiresIn: Int? = nil,
        scopes: [String]? = nil,
        email: String? = nil
    ) {
        self.accessToken = accessToken
        self.refreshToken = refreshToken
        self.expiresIn = expiresIn
        self.scopes = scopes
        self.email = email
    }

    private enum CodingKeys: String, CodingKey {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
        case expiresIn = "expires_in"
        case scopes = "scope"
        case email
    }

    /// The tokens, to be left out of what the server says about them.
    var secrets: [String] { [accessToken, refreshToken].compactMap(\.self) }
}

extension GoogleTokens: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The type's name, and no token.
    public var description: String { "GoogleTokens" }
    /// The type's name, and no token.
    public var debugDescription: String { description }
    /// Shows nothing, so that `dump` prints no token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
