internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer
internal import Storage
internal import Telemetry

/// The ComprehensionEngine routes: signing in with Google, and the app's own tokens.
struct ComprehensionRoutes: Sendable {
    let dependencies: RouteDependencies

    private var sessions: AppSessions { AppSessions(dependencies: dependencies) }

    var routes: [Route] {
        [
            route("POST", "/api/auth/mobile/google", signIn),
            route("POST", "/api/auth/refresh", refresh),
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
        dependencies.route(method, pattern, failingAs: ComprehensionError.self, handler)
    }

    // MARK: Handlers

    private func signIn(_ request: ServerRequest) async throws -> ServerResponse {
        try await dependencies.budgets.signIn(request) {
            let token = try RequestBody.json(request).required("access_token")
            // A malformed token is refused without asking Google.
            guard Token.isWellFormed(token) else { throw IdentityFailure.refused }
            let googleToken = Secret(token)
            let identity = try await dependencies.identityCheck.identity(of: googleToken)
            return Self.response(with: try await sessions.begin(as: identity, provenBy: googleToken))
        }
    }

    private func refresh(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        return Self.response(with: try await sessions.rotate(try RequestBody.json(request).required("refresh_token")))
    }

    /// Reads the token from the body if there is one: an app without a valid access token has only a refresh token.
    private func logOut(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        let token =
            request.body.isEmpty
            ? try request.bearerToken()
            : try RequestBody.json(request).text("refresh_token", limit: 8192) ?? request.bearerToken()
        try await sessions.end(by: token)
        return .object { $0.field("message", "Successfully logged out") }
    }

    private func user(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await dependencies.authenticator.user(of: request)
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

    /// Reports whether sign-in is configured; it shows the number of client ids and not the ids.
    private func status(_: ServerRequest) async throws -> ServerResponse {
        .object { line in
            line.field("configured", !dependencies.clientIDs.isEmpty)
            line.field("google_client_ids", dependencies.clientIDs.count)
            line.field("access_token_seconds", SessionTokenIssuer.accessLifetime.components.seconds)
            line.field("refresh_token_seconds", SessionTokenIssuer.refreshLifetime.components.seconds)
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

/// An error response of the ComprehensionEngine family: a status and one fixed text.
struct ComprehensionError: Error, Hashable, Sendable, RouteFamilyError {
    var status: Int
    var detail: String

    init(_ status: Int, _ detail: String) {
        self.status = status
        self.detail = detail
    }

    /// Translates an error into the family's; `nil` for an internal error.
    init?(_ error: any Error) {
        switch error {
        case let error as ComprehensionError: self = error
        // The app reacts to every refusal in the same way: it refreshes once, then signs out.
        case is AuthenticationRefusal: self = .notAuthenticated
        case RequestBodyError.undeclared: self.init(411, "A body is required, and its Content-Length")
        case RequestBodyError.unsupportedMediaType: self.init(415, "The body must be application/json")
        case RequestBodyError.unreadable: self.init(400, "The body is not a JSON object")
        case RequestBodyError.missing(let name): self.init(400, "\(name) is required")
        case RequestBodyError.invalid(let name, let requirement): self.init(400, "\(name) must be \(requirement)")
        case IdentityFailure.refused: self.init(400, "Invalid Google access token")
        case is IdentityFailure: self.init(502, "Google cannot be reached; try again")
        case is TooManyRequests: self.init(429, "Too many requests; try again later")
        default: return nil
        }
    }

    static let notAuthenticated = ComprehensionError(401, "Could not validate credentials")
    static let invalidRefreshToken = ComprehensionError(401, "Invalid refresh token")
    static let unknownPath = ComprehensionError(404, "Not Found")
    static let wrongMethod = ComprehensionError(405, "Method Not Allowed")
    /// The former backend has signed the user in, and no import has brought the user yet.
    static let notMovedYet = ComprehensionError(503, "The user is not moved yet; try again")
    static let internalError = ComprehensionError(500, "Internal Server Error")

    func response(headers: [ServerRequest.Field] = []) -> ServerResponse {
        let own: [ServerRequest.Field] =
            switch status {
            case 401: [("WWW-Authenticate", "Bearer")]
            case 503: [Duration.seconds(60).retryAfter]
            default: []
            }
        return .object(status: status, headers: own + headers) { $0.field("detail", detail) }
    }
}
