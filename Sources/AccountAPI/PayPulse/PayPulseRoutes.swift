internal import Clocks
internal import HTTPServer
internal import JSON
internal import Observability
internal import RefreshEngine
internal import Store

/// The PayPulse routes: storing tokens, the profile, disconnecting and deleting.
struct PayPulseRoutes: Sendable {
    /// The minimum time for which a deleted id is refused: PayPulse's own tokens live a day.
    private static let shortestTombstone: Duration = .seconds(86_400)

    let services: RouteDependencies

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
        services.route(method, pattern, failingAs: PayPulseError.self, handler)
    }

    // MARK: Handlers

    private func storeTokens(_ request: ServerRequest) async throws -> ServerResponse {
        try await services.budgets.signIn(request) { try await connect(request) }
    }

    private func connect(_ request: ServerRequest) async throws -> ServerResponse {
        let caller = try await services.gatekeeper.caller(of: request)
        let tokens = try GmailTokens(request)
        let identity = try await services.identityCheck.identity(behind: tokens.accessToken)
        let connection = GmailConnection(services: services, tokens: tokens, identity: identity, caller: caller)
        let outcome = try await connection.store()
        services.diagnostics.info(
            "connected",
            [
                "request": request.id, "grant": outcome.grant.id.description,
                "account_switch": "\(outcome.relation.isSwitch)",
            ]
        )
        return PayPulseAnswer.stored(outcome.relation, email: identity.email, scope: outcome.grant.scope)
    }

    private func profile(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await services.gatekeeper.user(of: request)
        return PayPulseAnswer.profile(of: user, grant: try await services.store.grant(ofUser: user.id))
    }

    private func disconnect(_ request: ServerRequest) async throws -> ServerResponse {
        try services.budgets.spendWrite(request)
        let caller = try await services.gatekeeper.caller(of: request)
        // A plain read first: a repeated request, which has nothing left to end, must not wait for the store's writer.
        if let grant = try await services.store.grant(ofUser: caller.userID), grant.reason != .userRequest {
            try await end(grantOf: caller, request)
        }
        return PayPulseAnswer.success("Gmail account disconnected") { $0.field("gmail_account_connected", false) }
    }

    private func end(grantOf caller: AuthenticatedCaller, _ request: ServerRequest) async throws {
        let now = services.time.now
        let ended = try await services.store.transact { transaction -> (former: Grant, grant: Grant)? in
            let user = try caller.settle(in: transaction, at: now)
            guard let grant = try transaction.grant(ofUser: user.id), grant.reason != .userRequest else { return nil }
            return (grant, try GrantEnding.end(grant, reason: .userRequest, in: transaction, at: now).grant)
        }
        if let ended { await tell(of: ended.grant, formerly: ended.former.state, by: request, at: now) }
    }

    /// Deletes the caller, and answers a repetition like the first request: the first answer may have been lost.
    private func deleteUser(_ request: ServerRequest) async throws -> ServerResponse {
        try services.budgets.spendWrite(request)
        do {
            try await delete(request)
        } catch AuthenticationRefusal.deleted {
            // The token is valid and names a user who is already deleted.
        }
        return PayPulseAnswer.success("User deleted successfully")
    }

    private func delete(_ request: ServerRequest) async throws {
        let caller = try await services.gatekeeper.caller(of: request)
        let now = services.time.now
        let end = max(now + Self.shortestTombstone, caller.claims.expiresAt)
        let deleted = try await services.store.transact { transaction -> (former: Grant?, grant: Grant?) in
            let user = try caller.settle(in: transaction, at: now)
            let former = try transaction.grant(ofUser: user.id)
            let outcome = try AccountDeletion.delete(user: user.id, in: transaction, at: now, until: end)
            return (former, outcome?.grant)
        }
        if let former = deleted.former, let grant = deleted.grant {
            await tell(of: grant, formerly: former.state, by: request, at: now)
        }
    }

    /// Logs a grant that its user ended, and notifies the engine, which revokes it at Google.
    private func tell(of grant: Grant, formerly former: GrantState, by request: ServerRequest, at now: Timestamp) async
    {
        services.diagnostics.info(
            "a user ended their grant",
            ["request": request.id, "grant": grant.id.description, "reason": grant.reason.rawValue]
        )
        services.log.state(
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
        await services.engine.storeChanged()
    }
}
