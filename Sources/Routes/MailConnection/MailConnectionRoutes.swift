internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage
internal import Telemetry

/// The routes under `/v1/`: connecting a user's Gmail, the profile, disconnecting and deleting.
///
/// Their paths and their JSON are those of PayPulse's backend.
struct MailConnectionRoutes: Sendable {
    /// A user without a grant who disconnects again within this time repeats a request.
    static let repetitionTime: Duration = .seconds(60)

    let dependencies: AppRoutes.Dependencies

    private var callers: CallerCheck { CallerCheck(dependencies: dependencies) }

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
        Route(method, path, errorForm: \.mailConnectionResponse, log: dependencies.log, handler: handler)
    }

    // MARK: Handlers

    private func storeTokens(_ request: ServerRequest) async throws -> ServerResponse {
        try await dependencies.budgets.signIn(request) { try await connect(request) }
    }

    private func connect(_ request: ServerRequest) async throws -> ServerResponse {
        let caller = try await callers.caller(of: request)
        let tokens = try GmailTokens(request)
        // Without a client the code is refused before Google is asked.
        if tokens.serverAuthCode != nil { _ = try dependencies.configuredExchanges }
        let identity = try await GoogleTokenCheck(dependencies: dependencies).identity(of: tokens.accessToken)
        let connected = try await connectGrant(by: tokens, of: identity, caller: caller, requestID: request.id)
        let relation = connected.relation
        dependencies.log.diagnostics.info(
            "connected",
            ["request": request.id, "grant": connected.grant.description, "account_switch": "\(relation.isSwitch)"]
        )
        return .success("Gmail OAuth tokens stored successfully!", status: 201) { data in
            data.field("google_email", identity.email)
            data.field("scope", connected.scope)
            data.field("account_switch", relation.isSwitch)
            data.field("message", relation.message)
            if let lacksRefreshToken = connected.lacksRefreshToken {
                data.field("refresh_token_missing", lacksRefreshToken)
            }
        }
    }

    private func connectGrant(
        by tokens: GmailTokens,
        of identity: GoogleIdentity,
        caller: AuthenticatedCaller,
        requestID: String
    ) async throws -> CodeExchanges.ConnectedGrant {
        if let code = tokens.serverAuthCode {
            let connector = CodeConnector(
                dependencies: dependencies,
                configured: try dependencies.configuredExchanges,
                code: code,
                tokens: tokens,
                identity: identity,
                caller: caller,
                requestID: requestID
            )
            return try await connector.connect()
        }
        let connector = GmailConnector(dependencies: dependencies, tokens: tokens, identity: identity, caller: caller)
        let connected = try await connector.store()
        return CodeExchanges.ConnectedGrant(
            relation: connected.relation,
            grant: connected.grant.id,
            scope: connected.grant.scope
        )
    }

    private func profile(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await callers.user(of: request)
        let grant = try await dependencies.store.grant(ofUser: user.id)
        return .success("User profile retrieved successfully") { data in
            data.field("name", Self.name(of: user, grant: grant))
            data.field("email", user.email ?? "")
            // PayPulse's own function returned the date alone, and the app shows it unchanged.
            data.field("created_on", user.createdAt.iso8601Date)
            data.field("created_at", user.createdAt.iso8601Seconds)
            data.field("gmail_account_connected", grant?.state.isConnected ?? false)
            guard let grant else { return data.null("gmail_connection") }
            data.object("gmail_connection") { $0.writeConnection(of: grant) }
        }
    }

    /// The backend's own name wins over Google's.
    private static func name(of user: User, grant: Grant?) -> String {
        if let name = user.name, !name.isEmpty { return name }
        return grant?.owner.name ?? ""
    }

    private func disconnect(_ request: ServerRequest) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        let caller = try await callers.caller(of: request)
        // Reads first: a repeated request has nothing left to end, and must not wait for the store's writer.
        if let grant = try await dependencies.store.grant(ofUser: caller.userID) {
            if grant.reason != .userRequest { try await end(grantOf: caller, by: request) }
        } else if try await !recordDisconnect(ofUserWithoutGrant: caller.userID) {
            // The grant was stored just now.
            try await end(grantOf: caller, by: request)
        }
        return Self.disconnected
    }

    private static var disconnected: ServerResponse {
        .success("Gmail account disconnected") { $0.field("gmail_account_connected", false) }
    }

    /// Records that a user without a grant has disconnected, or returns `false` if there is a grant. The grant can
    /// still be at a former backend, and an import must not connect it then.
    private func recordDisconnect(ofUserWithoutGrant userID: String) async throws -> Bool {
        let now = dependencies.time.now
        let recorded = try await dependencies.store.disconnectTime(ofUserWithoutGrant: userID)
        if let recorded, now - recorded < Self.repetitionTime { return true }
        return try await dependencies.store.transact { transaction in
            guard try transaction.grant(ofUser: userID) == nil else { return false }
            try transaction.recordDisconnect(ofUserWithoutGrant: userID, at: now)
            return true
        }
    }

    private func end(grantOf caller: AuthenticatedCaller, by request: ServerRequest) async throws {
        let now = dependencies.time.now
        let ended = try await dependencies.store.transact { transaction -> EndedGrant? in
            let user = try caller.storeUser(in: transaction, at: now)
            guard let grant = try transaction.grant(ofUser: user.id), grant.reason != .userRequest else { return nil }
            let ending = try GrantDisconnection.end(grant, reason: .userRequest, in: transaction, at: now)
            return EndedGrant(grant: ending.grant, formerState: grant.state)
        }
        if let ended { await report(ended, by: request, at: now) }
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
        let ended = try await dependencies.store.transact { transaction -> EndedGrant? in
            let user = try caller.storeUser(in: transaction, at: now)
            let former = try transaction.grant(ofUser: user.id)
            let deletion = try AccountDeletion.delete(user: user.id, in: transaction, at: now)
            guard let former, let grant = deletion?.grant else { return nil }
            return EndedGrant(grant: grant, formerState: former.state)
        }
        if let ended { await report(ended, by: request, at: now) }
    }

    /// Logs a grant that its user ended, and notifies the engine, which revokes it at Google.
    private func report(_ ended: EndedGrant, by request: ServerRequest, at now: Timestamp) async {
        let grant = ended.grant
        dependencies.log.diagnostics.info(
            "a user ended their grant",
            ["request": request.id, "grant": grant.id.description, "reason": grant.reason.rawValue]
        )
        dependencies.log.state(GrantEvent(of: grant, kind: .state, from: ended.formerState, at: now))
        await dependencies.engine.storeChanged()
    }
}

/// A grant that its user has ended, and the state that it had before.
private struct EndedGrant {
    let grant: Grant
    let formerState: GrantState
}

extension ServerResponse {
    /// Returns a success as PayPulse's app reads it: a message for people, the status, and data.
    fileprivate static func success(
        _ message: String,
        status: Int = 200,
        data: (inout JSONLine) -> Void = { _ in }
    ) -> ServerResponse {
        .object(status: status) { line in
            line.field("message", message)
            line.field("code", status)
            line.object("data", data)
        }
    }
}

extension JSONLine {
    fileprivate mutating func writeConnection(of grant: Grant) {
        field("state", grant.state.rawValue)
        fieldOrNull("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        field("since", grant.since.iso8601Seconds)
        fieldOrNull("verified_at", grant.lastSuccessAt?.iso8601Seconds)
        fieldOrNull("expires_at", grant.refreshToken?.expiresAt?.iso8601Seconds)
        fieldOrNull("google_email", grant.owner.email)
        strings("granted_scopes", grant.scope.split(separator: " ").map(String.init))
    }
}
