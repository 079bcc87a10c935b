internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage
internal import Telemetry

/// The PayPulse routes: storing tokens, the profile, disconnecting and deleting.
struct PayPulseRoutes: Sendable {
    let dependencies: RouteDependencies

    var routes: [Route] {
        [
            route("POST", "/v1/auth/gmail-tokens", storeTokens),
            // The path that older versions of the app use.
            route("POST", "/v1/auth/gmail/store-tokens", storeTokens),
            route("DELETE", "/v1/auth/gmail-tokens", disconnect),
            route("GET", "/v1/user/me", profile),
            route("DELETE", "/v1/user/me", deleteUser),
            // The path of the backend's former function.
            route("DELETE", "/v1/delete/me", deleteUser),
        ]
    }

    private func route(
        _ method: String,
        _ pattern: String,
        _ handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        dependencies.route(method, pattern, failingAs: PayPulseError.self, handler)
    }

    // MARK: Handlers

    private func storeTokens(_ request: ServerRequest) async throws -> ServerResponse {
        try await dependencies.budgets.signIn(request) { try await connect(request) }
    }

    private func connect(_ request: ServerRequest) async throws -> ServerResponse {
        let caller = try await dependencies.authenticator.caller(of: request)
        let tokens = try GmailTokens(request)
        let identity = try await dependencies.identityCheck.identity(of: tokens.accessToken)
        let connector = GmailConnector(dependencies: dependencies, tokens: tokens, identity: identity, caller: caller)
        let outcome = try await connector.store()
        dependencies.diagnostics.info(
            "connected",
            [
                "request": request.id, "grant": outcome.grant.id.description,
                "account_switch": "\(outcome.relation.isSwitch)",
            ]
        )
        return PayPulseResponse.stored(outcome.relation, email: identity.email, scope: outcome.grant.scope)
    }

    private func profile(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await dependencies.authenticator.user(of: request)
        return PayPulseResponse.profile(of: user, grant: try await dependencies.store.grant(ofUser: user.id))
    }

    private func disconnect(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        let caller = try await dependencies.authenticator.caller(of: request)
        // Reads first: a repeated request has nothing left to end, and must not wait for the store's writer.
        if let grant = try await dependencies.store.grant(ofUser: caller.userID), grant.reason != .userRequest {
            try await end(grantOf: caller, request)
        }
        return PayPulseResponse.success("Gmail account disconnected") { $0.field("gmail_account_connected", false) }
    }

    private func end(grantOf caller: AuthenticatedCaller, _ request: ServerRequest) async throws {
        let now = dependencies.time.now
        let change = try await dependencies.store.transact { transaction -> (former: Grant, grant: Grant)? in
            let user = try caller.storeUser(in: transaction, at: now)
            guard let grant = try transaction.grant(ofUser: user.id), grant.reason != .userRequest else { return nil }
            return (grant, try GrantEnding.end(grant, reason: .userRequest, in: transaction, at: now).grant)
        }
        if let change { await reportEnd(of: change.grant, formerly: change.former.state, request, at: now) }
    }

    /// Deletes the caller, and responds to a repetition as to the first request: the first response may have been lost.
    private func deleteUser(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        do {
            try await delete(request)
        } catch AuthenticationRefusal.deleted {
            // The token is valid and names a user who is already deleted.
        }
        return PayPulseResponse.success("User deleted successfully")
    }

    private func delete(_ request: ServerRequest) async throws {
        let caller = try await dependencies.authenticator.caller(of: request)
        let now = dependencies.time.now
        let deleted = try await dependencies.store.transact { transaction -> (former: Grant?, grant: Grant?) in
            let user = try caller.storeUser(in: transaction, at: now)
            let former = try transaction.grant(ofUser: user.id)
            let outcome = try AccountDeletion.delete(user: user.id, in: transaction, at: now)
            return (former, outcome?.grant)
        }
        if let former = deleted.former, let grant = deleted.grant {
            await reportEnd(of: grant, formerly: former.state, request, at: now)
        }
    }

    /// Logs a grant that its user ended, and notifies the engine, which revokes it at Google.
    private func reportEnd(
        of grant: Grant,
        formerly former: GrantState,
        _ request: ServerRequest,
        at now: Timestamp
    ) async {
        dependencies.diagnostics.info(
            "a user ended their grant",
            ["request": request.id, "grant": grant.id.description, "reason": grant.reason.rawValue]
        )
        dependencies.log.state(
            GrantEvent(
                grant: grant.id,
                at: now,
                kind: .state,
                from: former,
                to: grant.state,
                reason: grant.reason,
                generation: grant.generation
            )
        )
        await dependencies.engine.storeChanged()
    }
}

/// An error response of the PayPulse family: a status, one of the family's codes, and a fixed text.
struct PayPulseError: Hashable, Sendable, RouteFamilyError {
    /// The codes that installed apps know, and two new ones for a wrong address.
    ///
    /// Apps show any other code as "Server error (CODE)", so other errors use the nearest code and the exact status.
    enum Code: String, CaseIterable, Sendable {
        case invalidCredentials = "INVALID_CREDENTIALS"
        case invalidToken = "INVALID_TOKEN"
        case tokenExpired = "TOKEN_EXPIRED"
        case userNotFound = "USER_NOT_FOUND"
        case invalidJSON = "INVALID_JSON"
        case missingFields = "MISSING_FIELDS"
        case dependencyFailure = "DEPENDENCY_FAILURE"
        case internalServerError = "INTERNAL_SERVER_ERROR"
        case notFound = "NOT_FOUND"
        case methodNotAllowed = "METHOD_NOT_ALLOWED"
    }

    var status: Int
    var code: Code
    var message: String

    /// Translates an error into the family's; `nil` for an internal error.
    init?(_ error: any Error) {
        switch error {
        case let refusal as AuthenticationRefusal: self.init(refusal)
        case let problem as RequestBodyError: self.init(problem)
        case IdentityFailure.refused:
            self.init(400, .invalidCredentials, "Google does not accept this access token for this app")
        case is IdentityFailure, is VendingFailure:
            self.init(502, .dependencyFailure, "Google cannot be reached; try again")
        case is TooManyRequests:
            // The family does not have a code for this limit. It protects Google and the store, so their code fits
            // best.
            self.init(429, .dependencyFailure, "Too many requests; try again later")
        default: return nil
        }
    }

    init(_ status: Int, _ code: Code, _ message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    private init(_ refusal: AuthenticationRefusal) {
        switch refusal {
        case .missing: self.init(401, .invalidCredentials, "Authorization with a bearer token is required")
        case .invalid: self.init(401, .invalidToken, "The token is not valid")
        case .expired: self.init(401, .tokenExpired, "The token has expired")
        case .deleted: self.init(404, .userNotFound, "There is no such user")
        case .inactive: self.init(401, .invalidCredentials, "The user is not active")
        }
    }

    private init(_ problem: RequestBodyError) {
        switch problem {
        case .undeclared: self.init(411, .invalidJSON, "A body is required, and its Content-Length")
        case .unsupportedMediaType:
            self.init(415, .invalidJSON, "The body must be application/json or application/x-www-form-urlencoded")
        case .unreadable: self.init(400, .invalidJSON, "The body is not a JSON object")
        case .missing(let name): self.init(400, .missingFields, "\(name) is required")
        case .invalid(let name, let requirement): self.init(400, .invalidJSON, "\(name) must be \(requirement)")
        }
    }

    static let unknownPath = PayPulseError(404, .notFound, "There is no such route")
    static let wrongMethod = PayPulseError(405, .methodNotAllowed, "The route does not accept this method")
    static let internalError = PayPulseError(500, .internalServerError, "The server could not do this; try again")

    func response(headers: [ServerRequest.Field] = []) -> ServerResponse {
        let challenge: [ServerRequest.Field] = status == 401 ? [("WWW-Authenticate", "Bearer")] : []
        return .object(status: status, headers: challenge + headers) { line in
            line.object("error") { error in
                error.field("code", code.rawValue)
                error.field("message", message)
            }
        }
    }
}

/// The success responses of the PayPulse family: a message for people, the status, and data.
enum PayPulseResponse {
    static func success(
        status: Int = 200,
        _ message: String,
        data: (inout JSONLine) -> Void = { _ in }
    ) -> ServerResponse {
        .object(status: status) { line in
            line.field("message", message)
            line.field("code", status)
            line.object("data", data)
        }
    }

    static func stored(_ relation: ConnectionRules.Relation, email: String, scope: String) -> ServerResponse {
        success(status: 201, "Gmail OAuth tokens stored successfully!") { data in
            data.field("google_email", email)
            data.field("scope", scope)
            data.field("account_switch", relation.isSwitch)
            data.field("message", relation.message)
        }
    }

    /// Returns the user's profile with the state of the stored grant.
    static func profile(of user: User, grant: Grant?) -> ServerResponse {
        success("User profile retrieved successfully") { data in
            // The backend's own name wins over Google's.
            data.field("name", user.name.flatMap { $0.isEmpty ? nil : $0 } ?? grant?.owner.name ?? "")
            data.field("email", user.email ?? "")
            // PayPulse's own function returned the date alone, and the app shows it unchanged. A time for users who are
            // created here would show two forms in one app.
            data.field("created_on", user.createdAt.iso8601Date)
            data.field("gmail_account_connected", grant?.state.isConnected ?? false)
            guard let grant else { return data.null("gmail_connection") }
            data.object("gmail_connection") { $0.connection(grant) }
        }
    }
}

extension JSONLine {
    fileprivate mutating func connection(_ grant: Grant) {
        field("state", grant.state.rawValue)
        fieldOrNull("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        field("since", grant.since.iso8601Seconds)
        fieldOrNull("verified_at", grant.lastSuccessAt?.iso8601Seconds)
        fieldOrNull("google_email", grant.owner.email)
        array("granted_scopes") { scopes in
            for scope in grant.scope.split(separator: " ") { scopes.element(String(scope)) }
        }
    }
}
