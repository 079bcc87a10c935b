internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage
internal import Telemetry

/// The routes under `/v1/connections`: a user's Google accounts, each as a connection with an id.
///
///     POST   /v1/connections/google      tokens or a code, and "connection": "new", an id, or nothing for `default`
///     GET    /v1/connections             all of the user's
///     GET    /v1/connections/{id}
///     DELETE /v1/connections/{id}
struct ConnectionRoutes: Sendable {
    let dependencies: AppRoutes.Dependencies

    private var callers: CallerCheck { CallerCheck(dependencies: dependencies) }
    private var actions: ConnectionActions { ConnectionActions(dependencies: dependencies) }

    var routes: [Route] {
        [
            route("POST", "/v1/connections/google") { request, _ in
                try await dependencies.budgets.signIn(request) { try await connect(request) }
            },
            route("GET", "/v1/connections") { request, _ in try await list(request) },
            route("GET", "/v1/connections/{id}") { request, values in try await show(request, id: values["id"]) },
            route("DELETE", "/v1/connections/{id}") { request, values in
                try await disconnect(request, id: values["id"])
            },
        ]
    }

    private func route(
        _ method: String,
        _ path: String,
        handler: @escaping @Sendable (ServerRequest, PathValues) async throws -> ServerResponse
    ) -> Route {
        Route(method, path, errorForm: \.payPulseResponse, log: dependencies.log, handler: handler)
    }

    private func connect(_ request: ServerRequest) async throws -> ServerResponse {
        let caller = try await callers.caller(of: request)
        let tokens = try IncomingGoogleTokens(request, namesConnection: true)
        let connected = try await actions.connect(tokens, of: caller, requestID: request.id).grant
        // The user can be deleted already.
        guard let grant = try await dependencies.store.grant(connected.id) else { throw AppError.deletedUser }
        return .success("The Google account is connected", status: 201) { data in
            data.object("connection") { $0.writeConnectionWithID(of: grant) }
            data.field("account_switch", connected.relation.isSwitch)
            if let lacksRefreshToken = connected.lacksRefreshToken {
                data.field("refresh_token_missing", lacksRefreshToken)
            }
        }
    }

    private func list(_ request: ServerRequest) async throws -> ServerResponse {
        let user = try await callers.user(of: request)
        let grants = try await dependencies.store.grants(ofUser: user.id)
        return .success("Connections retrieved successfully") { $0.writeConnections(of: grants) }
    }

    private func show(_ request: ServerRequest, id: String) async throws -> ServerResponse {
        let user = try await callers.user(of: request)
        guard let connection = ConnectionID(id),
            let grant = try await dependencies.store.grant(ofUser: user.id, connection: connection)
        else { throw AppError.unknownConnection }
        return .success("Connection retrieved successfully") { data in
            data.object("connection") { $0.writeConnectionWithID(of: grant) }
        }
    }

    private func disconnect(_ request: ServerRequest, id: String) async throws -> ServerResponse {
        try dependencies.budgets.spendWrite(request)
        let caller = try await callers.caller(of: request)
        guard let connection = ConnectionID(id) else { throw AppError.unknownConnection }
        try await actions.disconnect(connection, of: caller, requestID: request.id)
        return .success("The Google account is disconnected") { $0.field("connection", connection.description) }
    }
}
