internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer
internal import Storage

/// The routes under `/api/` in the format of ComprehensionEngine: signing in with Google, and the app's own tokens.
extension RouteDependencies {
    var sessionRoutes: [Route] {
        let issuing = [
            route("POST", "/api/auth/mobile/google", signIn),
            route("POST", "/api/auth/refresh", refresh),
        ]
        return (tokens.signer == nil ? [] : issuing) + [
            route("GET", "/api/auth/me", user),
            route("POST", "/api/auth/logout", logOut),
            route("GET", "/api/auth/status", status),
        ]
    }

    private func route(
        _ method: String,
        _ pattern: String,
        _ handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        route(method, pattern, form: \.comprehensionResponse, handler)
    }

    // MARK: Handlers

    private func signIn(_ request: ServerRequest) async throws -> ServerResponse {
        try await budgets.signIn(request) {
            let body = try RequestBody(request)
            let nonce = try body.text("nonce")
            if let token = try body.text("id_token", limit: TokenSigner.maximumTokenLength) {
                _ = try body.token("access_token")
                let (identity, proof) = try await identity(ofIDToken: token, nonce: nonce)
                return Self.response(with: try await beginSession(as: identity, provenBy: proof))
            }
            let token = try body.required("access_token")
            // A malformed token is refused without asking Google.
            guard Token.isWellFormed(token) else { throw APIError.refusedByGoogle }
            let googleToken = Secret(token)
            let identity = try await identity(of: googleToken)
            return Self.response(with: try await beginSession(as: identity, provenBy: .accessToken(googleToken)))
        }
    }

    private func refresh(_ request: ServerRequest) async throws -> ServerResponse {
        try budgets.spendWrite(request)
        return Self.response(with: try await rotateSession(try RequestBody(request).required("refresh_token")))
    }

    /// Reads the token from the body if there is one: an app without a valid access token has only a refresh token.
    private func logOut(_ request: ServerRequest) async throws -> ServerResponse {
        try budgets.spendWrite(request)
        let token =
            request.body.isEmpty
            ? try request.bearerToken()
            : try RequestBody(request).text("refresh_token", limit: 8192) ?? request.bearerToken()
        try await endSession(by: token)
        return .object { $0.field("message", "Successfully logged out") }
    }

    private func user(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await user(of: request)
        return .object { line in
            line.field("id", user.id)
            line.field("email", user.email ?? "")
            line.field("name", user.name ?? "")
            line.fieldOrNull("picture", user.picture)
            line.fieldOrNull("avatar_url", user.picture)
            line.field("created_at", user.createdAt.iso8601Seconds)
            line.fieldOrNull("last_login", user.lastLoginAt?.iso8601Seconds)
            line.field("is_active", user.isActive)
        }
    }

    /// Reports whether sign-in is configured, with the number of client ids but not the ids.
    private func status(_: ServerRequest) async throws -> ServerResponse {
        .object { line in
            line.field("configured", !clientIDs.isEmpty && tokens.signer != nil)
            line.field("google_client_ids", clientIDs.count)
            line.field("access_token_seconds", SessionTokenPair.fullAccessLifetime.components.seconds)
            line.field("refresh_token_seconds", SessionTokenPair.refreshLifetime.components.seconds)
        }
    }

    private static func response(with tokens: SessionTokenPair) -> ServerResponse {
        .object { line in
            line.field("access_token", tokens.accessToken.reveal())
            line.field("refresh_token", tokens.refreshToken.reveal())
            line.field("token_type", "bearer")
            line.field("expires_in", tokens.accessLifetime.components.seconds)
        }
    }
}

/// The Google token that proves who signs in.
enum SignInProof: Sendable {
    case accessToken(Secret)
    /// An ID token, which counts once.
    case idToken(digest: [UInt8], expiresAt: Timestamp)

    /// How long an ID token that was used is remembered after its end.
    ///
    /// More than the difference between the clocks of two workers.
    private static let memory = Duration.seconds(3600)

    /// Throws if the token does not prove the identity to the worker, whatever Google says.
    ///
    /// The store remembers used ID tokens, because all workers share it.
    func check(
        in transaction: any StoreTransaction,
        owner: Grant.Owner,
        stored: User?,
        at now: Timestamp
    ) throws {
        switch self {
        case .accessToken(let token):
            try transaction.refuse(token, issuedTo: owner, at: now)
            if let stored { try transaction.refuse(token, issuedToUser: stored.id) }
        case .idToken(let digest, let expiresAt):
            // Recorded ids are deleted after their retention.
            let recordedAt = expiresAt + Self.memory - Retention.securityEvents
            let isFirst = try transaction.record(
                securityEvent: "id-token:\(Hexadecimal.encode(digest))",
                at: recordedAt
            )
            guard isFirst else { throw APIError.refusedIDToken }
        }
    }
}

extension RouteDependencies {
    private static let issuers = ["accounts.google.com", "https://accounts.google.com"]

    /// Returns the owner of an ID token, by Google's keys
    /// (https://developers.google.com/identity/sign-in/ios/backend-auth).
    ///
    /// The app passes the nonce that it gave to Google's SDK, if any.
    func identity(
        ofIDToken text: String,
        nonce: String?
    ) async throws(APIError) -> (GoogleIdentity, SignInProof) {
        let token: SignedToken
        do throws(CryptoError) {
            token = try SignedToken(text)
            try token.checkUse(at: time.now)
        } catch {
            throw .refusedIDToken
        }
        guard let id = token.keyID else { throw .refusedIDToken }
        let key: PublicKey?
        do throws(KeySetCache.Unavailable) {
            key = try await googleKeys.key(id: id).key
        } catch {
            throw .googleUnreachable
        }
        guard let key, token.verifies(with: key),
            token.claims["iss"]?.string.map(Self.issuers.contains) == true,
            nonce == nil || token.claims["nonce"]?.string == nonce,
            let expiresAt = token.claims["exp"]?.timestamp,
            let user = UserInfo(token.claims), let info = TokenInfo(token.claims),
            let identity = GoogleIdentity(
                user,
                info,
                clientIDs: clientIDs,
                serverClientID: exchanges?.client()?.id
            )
        else { throw .refusedIDToken }
        return (identity, .idToken(digest: token.digest, expiresAt: expiresAt))
    }
}

/// The stored users that a Google account can be linked to by its e-mail address.
package enum EmailLinking: String, CaseIterable, Sendable {
    /// Users whose address was verified by Google, or by the backend according to its token.
    case verified
    /// Users with any address, even one that its user has only claimed.
    case any
    /// No user.
    case never

    /// Returns the user with the account's id, otherwise the user with its e-mail address if the address is sufficient
    /// proof.
    ///
    /// An address counts only if Google decides who owns it, and only for a user without a Google account: otherwise a
    /// former owner of an address could sign in as its present user. By default the stored address must be verified as
    /// well: an attacker might have signed up elsewhere with the victim's address, and would share the account once the
    /// victim signs in. An address that several users have does not identify one of them.
    func user(for identity: GoogleIdentity, in transaction: any StoreTransaction) throws -> User? {
        if let user = try transaction.user(withGoogleUserID: identity.googleUserID) { return user }
        guard identity.googleIsAuthorityForEmail else { return nil }
        let candidates = try transaction.users(withEmail: identity.email).filter { user in
            user.googleUserID == nil && mayLink(user) && !user.isDeleted
        }
        return candidates.count == 1 ? candidates[0] : nil
    }

    private func mayLink(_ user: User) -> Bool {
        switch self {
        case .verified: user.emailIsVerified == true
        case .any: true
        case .never: false
        }
    }
}
