private import CPostgres
private import Crypto
private import Glibc

extension PostgresConnection {
    /// The oldest server that is known to support all statements.
    static let oldestServer = 130_000

    /// The query for a server that does not identify itself, such as some managed servers.
    private static let sessionQuery = SQLQuery(
        "session",
        "SELECT pg_backend_pid()::bigint, NULL::text, NULL::bigint"
    )

    /// Connects, and identifies the server.
    static func open(_ address: DatabaseAddress, until deadline: CallDeadline) throws(StatementFailure)
        -> PostgresConnection
    {
        OpenSSL.prepare()
        let started = unsafe address.withOptions { keywords, values in
            unsafe PQconnectStartParams(keywords, values, 0)
        }
        guard let handle = unsafe started else {
            throw StatementFailure(
                .ioFailure,
                "There is no memory for a connection to \(address). Look at the machine's memory."
            )
        }
        do throws(StatementFailure) {
            try unsafe finish(handle, address, until: deadline)
        } catch {
            unsafe PQfinish(handle)
            throw error
        }
        let connection = unsafe PostgresConnection(adopting: handle, database: address.description)
        guard connection.serverVersion >= oldestServer else {
            throw StatementFailure(
                .cannotOpen,
                "The server of \(address) is PostgreSQL \(connection.serverVersion / 10_000), and refresh-worker "
                    + "needs 13 or later. Upgrade the server, or name another."
            )
        }
        // Until that is known, no statement is prepared under a name.
        connection.markPooled()
        try identify(connection, until: deadline)
        return connection
    }

    /// Detects a pooler, which shows another process id than the server's, and identifies the server.
    private static func identify(_ connection: PostgresConnection, until deadline: CallDeadline)
        throws(StatementFailure)
    {
        let result: StatementResult
        do throws(StatementFailure) {
            result = try connection.run(StatementBatch(ServerIdentity.query), until: deadline)[0]
        } catch  where !error.losesConnection {
            result = try connection.run(StatementBatch(sessionQuery), until: deadline)[0]
        }
        _ = try result.first { row in
            if row.integer() == Int64(connection.serverProcess) { connection.markDirect() }
            let system = row.optionalText()
            let timeline = row.optionalInteger()
            if let system, let timeline {
                connection.identity = ServerIdentity(system: system, timeline: timeline)
            }
        }
        guard connection.isPooled else { return }
        // A pooler in statement mode ends the connection at the first.
        for statement in ["BEGIN", "ROLLBACK"] {
            try connection.execute("asking the pooler for a transaction", statement, until: deadline)
        }
    }

    private static func finish(
        _ handle: OpaquePointer,
        _ address: DatabaseAddress,
        until deadline: CallDeadline
    ) throws(StatementFailure) {
        guard unsafe PQstatus(handle) != CONNECTION_BAD else { throw unsafe refusal(handle, address) }
        // Makes the message contain the server's code.
        _ = unsafe PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        var events = POLLOUT
        while true {
            let readiness = unsafe wait(for: events, on: PQsocket(handle), until: deadline)
            guard case .ready = readiness else {
                throw StatementFailure(
                    StoreError(connecting: "no response in time", database: address.description),
                    losesConnection: true
                )
            }
            switch unsafe PQconnectPoll(handle) {
            case PGRES_POLLING_OK: return
            case PGRES_POLLING_READING: events = POLLIN
            case PGRES_POLLING_WRITING: events = POLLOUT
            default: throw unsafe refusal(handle, address)
            }
        }
    }

    private static func refusal(_ handle: OpaquePointer, _ address: DatabaseAddress) -> StatementFailure {
        // libpq reports this itself, without a code of the server's.
        guard unsafe PQconnectionNeedsPassword(handle) == 0 else {
            return StatementFailure(
                StoreError(
                    .refused,
                    "\(address.description.capitalizedFirst) asks for a password, and there is none. Put it into a "
                        + "password file (passfile= in the URL, or PGPASSFILE), or the whole URL into a file that "
                        + "url-file: names."
                ),
                losesConnection: true
            )
        }
        let detail = unsafe String(cString: PQerrorMessage(handle))
        let error = StoreError(connecting: detail, database: address.description)
        return StatementFailure(error, losesConnection: true)
    }
}
