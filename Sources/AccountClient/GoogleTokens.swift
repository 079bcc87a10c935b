/// The tokens that the app got from Google's SDK, for the backend.
///
/// They are never printed.
public struct GoogleTokens: Encodable, Hashable, Sendable {
    private let accessToken: String
    private let refreshToken: String?
    private let serverAuthCode: String?
    private let expiresIn: Int?
    private let refreshTokenExpiresIn: Int?
    private let scopes: [String]?
    private let email: String?

    /// Collects the SDK's values.
    ///
    /// The backend asks Google for those that are left out.
    ///
    /// - Parameters:
    ///   - accessToken: `user.accessToken.tokenString`.
    ///   - refreshToken: `user.refreshToken.tokenString`. Without it the backend keeps the one it has for this account.
    ///   - serverAuthCode: `result.serverAuthCode`, instead of `refreshToken`, for a backend with a client id of its own.
    ///   - expiresIn: The seconds that the access token has left.
    ///   - refreshTokenExpiresIn: The seconds that the refresh token has left, from `user.refreshToken.expirationDate`
    ///     right after the sign-in. Google limits it while the project is in testing, or if the user granted access for
    ///     a limited time.
    ///   - scopes: `user.grantedScopes`.
    ///   - email: `user.profile?.email`.
    public init(
        accessToken: String,
        refreshToken: String? = nil,
        serverAuthCode: String? = nil,
        expiresIn: Int? = nil,
        refreshTokenExpiresIn: Int? = nil,
        scopes: [String]? = nil,
        email: String? = nil
    ) {
        self.accessToken = accessToken
        self.refreshToken = refreshToken
        self.serverAuthCode = serverAuthCode
        self.expiresIn = expiresIn
        self.refreshTokenExpiresIn = refreshTokenExpiresIn
        self.scopes = scopes
        self.email = email
    }

    private enum CodingKeys: String, CodingKey {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
        case serverAuthCode = "server_auth_code"
        case expiresIn = "expires_in"
        case refreshTokenExpiresIn = "refresh_token_expires_in"
        case scopes = "scope"
        case email
    }

    /// The tokens, which are removed from the server's error texts.
    var secrets: [String] { [accessToken, refreshToken, serverAuthCode].compactMap(\.self) }
}

extension GoogleTokens: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The type's name, without a token.
    public var description: String { "GoogleTokens" }
    /// The type's name, without a token.
    public var debugDescription: String { description }
    /// An empty mirror, so that `dump` does not print a token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
