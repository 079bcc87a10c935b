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
