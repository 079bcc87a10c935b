internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer
internal import Storage

/// The routes under `/api/`: signing in with Google, and the app's own tokens.
///
/// Their paths and their JSON are those of ComprehensionEngine's backend.
struct SessionRoutes: Sendable {
    let dependencies: AppRoutes.Dependencies

    private var sessions: AppSessions { AppSessions(dependencies: dependencies) }

    var routes: [Route] {
        let always = [
            route("GET", "/api/auth/me", handler: user),
            route("POST", "/api/auth/logout", handler: logOut),
            route("GET", "/api/auth/status", handler: status),
        ]
        // Without a shared secret the worker issues no sessions.
        if dependencies.tokens.signer == nil { return always }
        return [
            route("POST", "/api/auth/mobile/google", handler: signIn),
            route("POST", "/api/auth/refresh", handler: refresh),
        ] + always
    }

    private func route(
        _ method: String,
        _ path: String,
        handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        Route(method, path, errorForm: \.sessionResponse, log: dependencies.log) { request, _ in
            try await handler(request)
        }
    }

    // MARK: Handlers

    private func signIn(_ request: ServerRequest) async throws -> ServerResponse {
        try await dependencies.budgets.signIn(request) {
            let owner = try await provenOwner(try RequestBody(request))
            return Self.response(with: try await sessions.begin(as: owner.identity, provenBy: owner.proof))
        }
    }

    /// Returns the owner of the Google token in the body: an ID token, otherwise an access token.
    private func provenOwner(_ body: RequestBody) async throws -> ProvenOwner {
        let check = GoogleTokenCheck(dependencies: dependencies)
        let nonce = try body.text("nonce")
        if let idToken = try body.text("id_token", limit: TokenSigner.maximumTokenLength) {
            // Not used, and checked as the description says, so that a mistake of the app shows.
            _ = try body.token("access_token")
            return try await check.owner(ofIDToken: idToken, nonce: nonce)
        }
        let text = try body.required("access_token")
        // A malformed token is refused without asking Google.
        guard Token.isWellFormed(text) else { throw AppError.refusedByGoogle }
        let accessToken = Secret(text)
        return ProvenOwner(identity: try await check.identity(of: accessToken), proof: .accessToken(accessToken))
    }

    private func refresh(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        return Self.response(with: try await sessions.rotate(try RequestBody(request).required("refresh_token")))
    }

    private func logOut(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        try await sessions.end(by: try Self.tokenToEnd(request))
        return .object { $0.field("message", "Successfully logged out") }
    }

    /// The token in the body comes first: an app without a valid access token has only a refresh token.
    private static func tokenToEnd(_ request: ServerRequest) throws(AppError) -> String {
        if !request.body.isEmpty, let token = try RequestBody(request).text("refresh_token", limit: 8192) {
            return token
        }
        return try request.bearerToken()
    }

    private func user(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await CallerCheck(dependencies: dependencies).user(of: request)
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
        let clientIDs = dependencies.clientIDs
        return .object { line in
            line.field("configured", !clientIDs.isEmpty && dependencies.tokens.signer != nil)
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
