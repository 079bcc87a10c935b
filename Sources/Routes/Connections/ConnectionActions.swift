internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage
internal import Telemetry

/// What ``ConnectionRoutes`` and ``PayPulseRoutes`` share: connecting an account, and disconnecting it.
struct ConnectionActions: Sendable {
    /// A user without a grant who disconnects again within this time repeats a request.
    static let repetitionTime: Duration = .seconds(60)

    /// A Google account, and the grant that has its tokens.
    struct ConnectedAccount: Sendable {
        let identity: GoogleIdentity
        let grant: CodeExchanges.ConnectedGrant
    }

    let dependencies: AppRoutes.Dependencies

    // MARK: Connecting

    /// Stores the tokens of an app, whose owner Google names.
    func connect(
        _ tokens: IncomingGoogleTokens,
        of caller: AuthenticatedCaller,
        requestID: String
    ) async throws -> ConnectedAccount {
        // Without a client the code is refused before Google is asked.
        if tokens.serverAuthCode != nil { _ = try dependencies.configuredExchanges }
        let identity = try await GoogleTokenCheck(dependencies: dependencies).identity(of: tokens.accessToken)
        let grant = try await store(tokens, of: identity, caller: caller, requestID: requestID)
        dependencies.log.diagnostics.info(
            "connected",
            [
                "request": requestID, "grant": grant.id.description, "account_switch": "\(grant.relation.isSwitch)",
            ]
        )
        return ConnectedAccount(identity: identity, grant: grant)
    }

    private func store(
        _ tokens: IncomingGoogleTokens,
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
        let connector = AccountConnector(dependencies: dependencies, tokens: tokens, identity: identity, caller: caller)
        let connected = try await connector.store()
        return CodeExchanges.ConnectedGrant(
            relation: connected.relation,
            id: connected.grant.id,
            scope: connected.grant.scope
        )
    }

    // MARK: Disconnecting

    /// Ends a connection, or does nothing if its user has ended it before.
    func disconnect(_ connection: ConnectionID, of caller: AuthenticatedCaller, requestID: String) async throws {
        // Reads first: a repeated request has nothing left to end, and must not wait for the store's writer.
        if let grant = try await dependencies.store.grant(ofUser: caller.userID, connection: connection) {
            if grant.reason != .userRequest { try await end(connection, of: caller, requestID: requestID) }
        } else if !connection.isDefault {
            throw AppError.unknownConnection
        } else if try await !recordDisconnect(ofUserWithoutGrant: caller.userID) {
            // The grant was stored just now.
            try await end(connection, of: caller, requestID: requestID)
        }
    }

    /// Records that a user without a grant has disconnected, or returns `false` if there is a grant. The grant can
    /// still be at a former backend, and an import must not connect it then.
    private func recordDisconnect(ofUserWithoutGrant userID: String) async throws -> Bool {
        let now = dependencies.time.now
        let recorded = try await dependencies.store.disconnectTime(ofUserWithoutGrant: userID)
        if let recorded, now - recorded < Self.repetitionTime { return true }
        return try await dependencies.store.transact { transaction in
            guard try transaction.grant(ofUser: userID, connection: .default) == nil else { return false }
            try transaction.recordDisconnect(ofUserWithoutGrant: userID, at: now)
            return true
        }
    }

    private func end(_ connection: ConnectionID, of caller: AuthenticatedCaller, requestID: String) async throws {
        let now = dependencies.time.now
        let ended = try await dependencies.store.transact { transaction -> [GrantDisconnection] in
            let user = try caller.storeUser(in: transaction, at: now)
            guard let grant = try transaction.grant(ofUser: user.id, connection: connection),
                grant.reason != .userRequest
            else { return [] }
            return [try GrantDisconnection.end(grant, reason: .userRequest, in: transaction, at: now)]
        }
        await report(ended, requestID: requestID, at: now)
    }

    /// Logs grants that their user ended, and notifies the engine, which revokes them at Google.
    func report(_ ended: [GrantDisconnection], requestID: String, at now: Timestamp) async {
        guard !ended.isEmpty else { return }
        for ending in ended {
            let grant = ending.grant
            dependencies.log.diagnostics.info(
                "a user ended their grant",
                ["request": requestID, "grant": grant.id.description, "reason": grant.reason.rawValue]
            )
            dependencies.log.state(GrantEvent(of: grant, kind: .state, from: ending.formerState, at: now))
        }
        await dependencies.engine.storeChanged()
    }
}
