import Foundation

extension AccountClient {
    /// The backend's envelope around the content of its responses.
    private struct Envelope<Content: Decodable & Sendable>: Decodable, Sendable {
        let data: Content
    }

    /// Gives the backend the tokens of Google's SDK, and with them access to the user's Gmail.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    @discardableResult
    public func storeGoogleTokens(_ tokens: GoogleTokens) async throws(AccountError) -> StoredGrant {
        try await store(tokens, as: nil)
    }

    private func store(_ tokens: GoogleTokens, as account: Int?) async throws(AccountError) -> StoredGrant {
        try await call(
            Envelope<StoredGrant>.self,
            "POST",
            "v1/auth/gmail-tokens",
            body: tokens,
            redacting: tokens.secrets,
            as: account
        ).data
    }

    /// Returns the user's profile.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    public func profile() async throws(AccountError) -> Profile { try await profile(as: nil) }

    private func profile(as account: Int?) async throws(AccountError) -> Profile {
        try await call(Envelope<Profile>.self, "GET", "v1/user/me", as: account).data
    }

    /// Ends the backend's access to the user's Gmail.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    public func disconnectGmail() async throws(AccountError) {
        try await callForSuccess("DELETE", "v1/auth/gmail-tokens")
    }

    /// Returns the scopes of `needed` that the user has not granted, according to the current profile.
    ///
    /// - Throws: As ``profile()``.
    public func missingScopes(needed: [String]) async throws(AccountError) -> [String] {
        try await profile().missingScopes(needed: needed)
    }

    /// A request to the user for scopes, to make with Google's SDK.
    public struct ScopeRequest: Hashable, Sendable {
        /// The missing scopes.
        public let scopes: [String]
        /// The call of the SDK that can succeed: `signIn` with `additionalScopes` if `true`, else `addScopes`.
        ///
        /// `true` if Gmail is not connected. The phone still remembers the scopes of a grant that has ended, and
        /// `addScopes` fails with `scopesAlreadyGranted` for them.
        public let needsSignIn: Bool
    }

    /// Asks the user for the missing scopes, if any, and gives the backend the extended grant.
    ///
    /// It also makes the first connection, and repairs one that has ended: then every scope is missing.
    ///
    /// - Parameters:
    ///   - needed: The scopes that the app is about to use.
    ///   - askUser: Asks with Google's SDK, and returns the SDK's tokens.
    /// - Returns: The scopes that are still missing, because the user did not grant them.
    /// - Throws: The error of `askUser`, and as ``storeGoogleTokens(_:)``.
    public func addScopes(
        _ needed: [String],
        askUser: @Sendable (_ request: ScopeRequest) async throws -> GoogleTokens
    ) async throws -> [String] {
        let account = try await bearer().account
        let profile = try await profile(as: account)
        let missing = profile.missingScopes(needed: needed)
        guard !missing.isEmpty else { return [] }
        let tokens = try await askUser(ScopeRequest(scopes: missing, needsSignIn: !profile.isGmailConnected))
        // The user consented for the account that called: the grant must not go to another account.
        let stored = try await store(tokens, as: account)
        return Profile.missing(needed, from: stored.grantedScopes)
    }
}

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
