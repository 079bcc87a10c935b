internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage
internal import Telemetry

/// The routes of PayPulse's backend, with its paths and its JSON: connecting a user's Google account, the profile,
/// disconnecting and deleting.
///
/// They connect and disconnect the default connection alone, and call its account Gmail. The profile also lists the
/// user's other connections, and a deletion ends them. ``ConnectionRoutes`` change each connection.
struct PayPulseRoutes: Sendable {
    let dependencies: AppRoutes.Dependencies

    private var callers: CallerCheck { CallerCheck(dependencies: dependencies) }
    private var actions: ConnectionActions { ConnectionActions(dependencies: dependencies) }

    var routes: [Route] {
        [
            route("POST", "/v1/auth/gmail-tokens", handler: storeTokens),
            // The path that older versions of the app use.
            route("POST", "/v1/auth/gmail/store-tokens", handler: storeTokens),
            route("DELETE", "/v1/auth/gmail-tokens", handler: disconnect),
            route("GET", "/v1/user/me", handler: profile),
            route("DELETE", "/v1/user/me", handler: deleteUser),
            // The path of the backend's former function.
            route("DELETE", "/v1/delete/me", handler: deleteUser),
        ]
    }

    private func route(
        _ method: String,
        _ path: String,
        handler: @escaping @Sendable (ServerRequest) async throws -> ServerResponse
    ) -> Route {
        Route(method, path, errorForm: \.payPulseResponse, log: dependencies.log) { request, _ in
            try await handler(request)
        }
    }

    // MARK: Handlers

    private func storeTokens(_ request: ServerRequest) async throws -> ServerResponse {
        try await dependencies.budgets.signIn(request) { try await connect(request) }
    }

    private func connect(_ request: ServerRequest) async throws -> ServerResponse {
        let caller = try await callers.caller(of: request)
        let tokens = try IncomingGoogleTokens(request)
        let account = try await actions.connect(tokens, of: caller, requestID: request.id)
        let (grant, relation) = (account.grant, account.grant.relation)
        return .success("Gmail OAuth tokens stored successfully!", status: 201) { data in
            data.field("google_email", account.identity.email)
            data.field("scope", grant.scope)
            data.field("account_switch", relation.isSwitch)
            data.field("message", relation.payPulseMessage)
            if let lacksRefreshToken = grant.lacksRefreshToken {
                data.field("refresh_token_missing", lacksRefreshToken)
            }
        }
    }

    private func profile(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await callers.user(of: request)
        let grants = try await dependencies.store.grants(ofUser: user.id)
        let grant = grants.first { $0.connection.isDefault }
        return .success("User profile retrieved successfully") { data in
            data.field("name", Self.name(of: user, grant: grant))
            data.field("email", user.email ?? "")
            // PayPulse's own function returned the date alone, and the app shows it unchanged.
            data.field("created_on", user.createdAt.iso8601Date)
            data.field("created_at", user.createdAt.iso8601Seconds)
            // PayPulse's names: what /v1/connections says about the connection `default`.
            data.field("gmail_account_connected", grant?.state.isConnected ?? false)
            if let grant {
                data.object("gmail_connection") { $0.writeConnection(of: grant) }
            } else {
                data.null("gmail_connection")
            }
            data.writeConnections(of: grants)
        }
    }

    /// The backend's own name wins over Google's.
    private static func name(of user: User, grant: Grant?) -> String {
        if let name = user.name, !name.isEmpty { return name }
        return grant?.owner.name ?? ""
    }

    private func disconnect(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        try await actions.disconnect(.default, of: try await callers.caller(of: request), requestID: request.id)
        return .success("Gmail account disconnected") { $0.field("gmail_account_connected", false) }
    }

    /// Deletes the caller, and responds to a repetition as to the first request: the first response might have been
    /// lost.
    private func deleteUser(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        do {
            try await delete(request)
        } catch let error as AppError where error == .deletedUser {
            // The token is valid and names a user who is already deleted.
        }
        return .success("User deleted successfully")
    }

    private func delete(_ request: ServerRequest) async throws {
        let caller = try await callers.caller(of: request)
        let now = dependencies.time.now
        let deletion = try await dependencies.store.transact { transaction in
            let user = try caller.storeUser(in: transaction, at: now)
            return try AccountDeletion.delete(user: user.id, in: transaction, at: now)
        }
        await actions.report(deletion?.ends ?? [], requestID: request.id, at: now)
    }
}

extension ConnectionRules.Relation {
    /// What PayPulse's app shows to its user.
    var payPulseMessage: String {
        switch self {
        case .first: "First Gmail connection"
        case .same: "Same Google account or first connection"
        case .switched(let from, let to): "Switching from \(from) to \(to)"
        }
    }
}
