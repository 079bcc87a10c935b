internal import Base
internal import HTTPServer
internal import Records
internal import Scheduler
internal import Status
internal import Storage
internal import Telemetry

/// The commands `grants list`, `show`, `import`, `disconnect` and `retry`, and `users delete`, as routes for a service
/// that the services file allows to manage grants.
struct AdministrationHandler: Sendable {
    /// An operation, by its name in the audit.
    enum Operation: String, CaseIterable, Sendable {
        case list
        case show
        case put
        case disconnect
        case retry
        case deleteUser = "delete_user"

        /// The operation of each method and path.
        fileprivate static let routes: [(method: String, path: String, operation: Operation)] = [
            ("GET", "/v1/grants", .list), ("GET", "/v1/grants/{user_id}", .show),
            ("PUT", "/v1/grants/{user_id}", .put), ("DELETE", "/v1/grants/{user_id}", .disconnect),
            ("POST", "/v1/grants/{user_id}/retry", .retry), ("DELETE", "/v1/users/{user_id}", .deleteUser),
        ]
    }

    /// Throws if a change must not be made to the user's stored grant.
    typealias GrantCheck = @Sendable (Grant?) throws -> Void

    private struct Change {
        let response: ServerResponse
        /// The connection's grant as it is stored now.
        var grant: Grant?
        /// All that have ended with the user.
        var ends: [GrantDisconnection] = []
    }

    let engine: RefreshEngine
    let vault: TokenVault
    let services: ServiceDirectory
    let database: DatabaseReadiness
    let log: EngineLog
    let time: any TimeSource
    let random: any RandomSource
    /// The configured client ids of this moment, which a reload can change.
    let clientIDs: @Sendable () -> [String]

    /// Returns the routes, which say so if the worker has no services file.
    static func routes(_ handler: AdministrationHandler?) -> [Route] {
        Operation.routes.map { method, path, operation in
            Route(method, path) { request, values in
                guard let handler else { return .respond(ServiceError.noServices.response) }
                let user = operation == .list ? nil : values["user_id"]
                return .respond(await handler.answer(operation, request, user: user))
            }
        }
    }

    private func answer(_ operation: Operation, _ request: ServerRequest, user: String?) async -> ServerResponse {
        guard let service = BearerToken(of: request).text.flatMap({ services.service(presenting: $0) }) else {
            log.diagnostics.info(
                "refused to manage grants: the credential is missing or unknown",
                ["from": request.peerAddress]
            )
            return ServiceError.unauthorized.response
        }
        do throws(ServiceError) {
            return try await perform(operation, request, user: user, by: service)
        } catch {
            return error.response
        }
    }

    /// Performs an operation once the audit's line is recorded.
    ///
    /// A refusal is recorded too. Without a `connection` the request's query can name one. `check` is called in the
    /// transaction that disconnects or retries the grant.
    func perform(
        _ operation: Operation,
        _ request: ServerRequest,
        user: String?,
        connection: ConnectionID? = nil,
        by service: Service,
        checking check: @escaping GrantCheck = { _ in }
    ) async throws(ServiceError) -> ServerResponse {
        var grant: GrantID?
        var target: Target?
        do {
            guard service.isManager else { throw ServiceError.notManager }
            // Before the store is read, so that a service does not learn anything about other users.
            if let user {
                let named: Target
                if let connection {
                    named = Target(user: user, connection: connection)
                } else {
                    named = try Target(user: user, query: request.query, of: operation)
                }
                try named.check(operation, for: service)
                target = named
            }
            // A request to a database that does not answer would take seconds.
            guard database.problem == nil else { throw ServiceError.storeUnavailable }
            var stored: Grant?
            if let target {
                stored = try await database.store.grant(ofUser: target.user, connection: target.connection)
            }
            grant = stored?.id
            guard record(operation, "allowed", service, grant, target?.connection) else {
                throw ServiceError.manageAuditUnavailable
            }
            guard let target else { return try await list(GrantPageRequest(request.query), for: service) }
            let change: Change
            switch operation {
            case .list, .show:
                return try await show(target, stored: stored, withOthers: request.query.isEmpty, for: service)
            case .put: change = try await put(request.body, for: target, by: service)
            case .disconnect: change = try await disconnect(target, check)
            case .retry: change = try await retry(target, check)
            case .deleteUser: change = try await delete(target.user)
            }
            await engine.storeChanged()
            if let stored, let changed = change.grant {
                log.state(GrantEvent(of: changed, kind: .state, from: stored.state, at: time.now))
            }
            for end in change.ends {
                log.state(GrantEvent(of: end.grant, kind: .state, from: end.formerState, at: time.now))
            }
            _ = record(operation, "done", service, change.grant?.id ?? grant, target.connection)
            return change.response
        } catch {
            let refusal = ServiceError(causedBy: error)
            if refusal == .storeUnavailable {
                log.diagnostics.warning("grants could not be managed: the database failed", ["error": "\(error)"])
            }
            _ = record(operation, refusal.code, service, grant, target?.connection)
            throw refusal
        }
    }

    /// Writes the audit's line, and returns `false` if the line might be lost.
    private func record(
        _ operation: Operation,
        _ outcome: String,
        _ service: Service,
        _ grant: GrantID?,
        _ connection: ConnectionID?
    ) -> Bool {
        log.metrics.record(.manage(operation, outcome, service, grant, connection ?? .default))
    }

    // MARK: Operations

    private func list(_ request: GrantPageRequest, for service: Service) async throws -> ServerResponse {
        let (grants, next) = try await request.page(of: database.store, for: service, at: time.now)
        return .object(headers: [ServerResponse.noStore]) { line in
            line.array("grants") { array in for grant in grants { array.object(grant.write) } }
            line.fieldOrNull("next", next)
        }
    }

    /// Shows a grant. A request that names no connection also gets all of the user's.
    private func show(
        _ target: Target,
        stored: Grant?,
        withOthers: Bool,
        for service: Service
    ) async throws -> ServerResponse {
        var grants: [Grant] = []
        if withOthers {
            grants = try await database.store.grants(ofUser: target.user).filter { service.covers($0.connection) }
        }
        guard stored != nil || !grants.isEmpty else { throw ServiceError.noGrant }
        let now = time.now
        return .object(headers: [ServerResponse.noStore]) { line in
            if let stored {
                stored.writeWithWarnings(to: &line, at: now)
            } else {
                line.field("user_id", target.user)
            }
            if withOthers { line.objects("connections", grants) { $0.writeWithWarnings(to: &$1, at: now) } }
        }
    }

    private func put(_ body: [UInt8], for target: Target, by service: Service) async throws -> Change {
        let members = JSONValue.object(in: body)?.object ?? [:]
        if let labels = members["labels"], members.count == 1 { return try await label(target, with: labels) }
        var imported: ImportedGrant
        do throws(InputError) {
            guard let record = JSONValue.object(in: body)?.object else {
                throw InputError("the body is not a JSON object")
            }
            let members = record.withoutDynamoDBTypes
            imported = try ImportedGrant(
                reading: members,
                clientIDs: clientIDs(),
                userID: target.user,
                connection: target.connection,
                at: time.now
            )
            guard imported.userID.utf8.elementsEqual(target.user.utf8) else {
                throw InputError("user_id names another user than the path")
            }
            guard imported.connection == target.connection else {
                throw InputError("connection names another connection than the query")
            }
        } catch {
            throw ServiceError.invalidRequest(error.message)
        }
        // A claimed account would be compared with those of users whom the service may not manage. The first refresh
        // learns the real one.
        if service.users != .everything { imported.owner = Grant.Owner() }
        try vault.checkMaySeal()
        let store = database.store
        let writer = ImportedGrantWriter(store: store, vault: vault, time: time, random: random, existing: .replace)
        do throws(InputError) {
            try writer.check(imported)
        } catch {
            throw ServiceError.invalidRequest(error.message)
        }
        let result: String
        switch try await writer.store([imported]).first {
        case .keptEnded: throw ServiceError.keptEnded
        case .refused: throw ServiceError.userWasDeleted
        case .accountConnected(let connection):
            throw ServiceError.accountConnected(service.covers(connection) ? connection : nil)
        case .stored: result = "added"
        case .kept: result = "kept"
        case .replaced, nil: result = "replaced"
        }
        let grant = try await store.grant(ofUser: target.user, connection: target.connection)
        let status = result == "added" ? 201 : 200
        let response = ServerResponse.object(status: status, headers: [ServerResponse.noStore]) { line in
            line.field("result", result)
            grant?.write(to: &line)
        }
        return Change(response: response, grant: grant)
    }

    /// Changes the labels of a connection, and nothing else.
    private func label(_ target: Target, with value: JSONValue) async throws -> Change {
        guard let labels = ConnectionLabels(value) else {
            throw ServiceError.invalidRequest("labels \(ConnectionLabels.rule)")
        }
        let changed = try await database.store.transact { transaction -> Grant? in
            let stored = try transaction.grant(ofUser: target.user, connection: target.connection)
            guard var grant = stored, ![.userDeleted, .forgotten].contains(grant.reason) else { return nil }
            grant.labels = labels
            try transaction.update(grant)
            return grant
        }
        guard let changed else { throw ServiceError.noGrant }
        let response = ServerResponse.object(headers: [ServerResponse.noStore]) { line in
            line.field("result", "labelled")
            changed.write(to: &line)
        }
        return Change(response: response)
    }

    private func disconnect(_ target: Target, _ check: @escaping GrantCheck) async throws -> Change {
        let now = time.now
        let ending = try await database.store.transact { transaction in
            try check(transaction.grant(ofUser: target.user, connection: target.connection))
            return try GrantDisconnection.end(
                grantOfUser: target.user,
                connection: target.connection,
                in: transaction,
                at: now
            )
        }
        guard let ending else { throw ServiceError.noGrant }
        let end = ending.plannedEnd
        let response = ServerResponse.object(headers: [ServerResponse.noStore]) { line in
            end.write(to: &line, ofUser: target.user, connection: target.connection)
        }
        return Change(response: response, grant: ending.grant)
    }

    private func retry(_ target: Target, _ check: @escaping GrantCheck) async throws -> Change {
        let now = time.now
        let outcome = try await database.store.transact { transaction in
            try check(transaction.grant(ofUser: target.user, connection: target.connection))
            return try GrantRetry.retry(
                grantOfUser: target.user,
                connection: target.connection,
                in: transaction,
                at: now
            )
        }
        guard let (grant, result) = outcome, grant.reason != .userDeleted else { throw ServiceError.noGrant }
        if let problem = result.problem(of: grant) {
            throw ServiceError.notRetried(result, problem: problem, reason: grant.reason, since: grant.since)
        }
        let response = ServerResponse.object(headers: [ServerResponse.noStore]) { line in
            line.field("user_id", target.user)
            line.field("result", result.rawValue)
            line.field("connection", target.connection.description)
        }
        return Change(response: response, grant: grant)
    }

    private func delete(_ user: String) async throws -> Change {
        let now = time.now
        let deletion = try await database.store.transact { try AccountDeletion.delete(user: user, in: $0, at: now) }
        guard let deletion else { throw ServiceError.noUser }
        let end = deletion.plannedEnd
        let response = ServerResponse.object(headers: [ServerResponse.noStore]) { line in
            deletion.write(to: &line, ofUser: user, revocation: end)
        }
        return Change(response: response, ends: deletion.ends)
    }
}

extension MetricsEvent {
    /// One operation of a service that manages grants.
    static func manage(
        _ operation: AdministrationHandler.Operation,
        _ outcome: String,
        _ service: Service,
        _ grant: GrantID?,
        _ connection: ConnectionID
    ) -> MetricsEvent {
        MetricsEvent("manage") { line in
            line.text("service", service.name, "the service that asked, as in the services file")
            line.text(
                "operation",
                operation.rawValue,
                AdministrationHandler.Operation.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
            )
            line.text(
                "outcome",
                outcome,
                """
                `allowed`, before anything is shown or changed; then `done` for a change; else the error code of the \
                response
                """
            )
            line.text("grant", ifAny: grant?.description, "the grant, if the user has one")
            line.connection(connection)
        }
    }
}
