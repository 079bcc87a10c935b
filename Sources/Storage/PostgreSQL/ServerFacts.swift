package import Base

/// The facts that a server reports about itself and about this program's tables, queried without a write.
package struct ServerFacts: Hashable, Sendable {
    /// The version as people write it: 15.8.
    package var version: String
    /// The version of this program's tables, or `nil` if there are none, or none that this user can read.
    package var schema: Int?
    package var user: String
    /// The size of the whole database in bytes.
    package var bytes: Int64
    /// The server's clock, at about the middle of the query's round trip.
    package var clock: Timestamp
    package var roundTrip: Duration
    /// `true` if the connection is encrypted up to the server, or up to a pooler before it.
    package var isEncrypted: Bool
    package var isPooled: Bool
    /// `true` if it follows another server, and so does not accept writes.
    package var isStandby: Bool
    /// The statement that makes transactions writable, if a setting makes them read-only.
    package var writableBy: String?
    /// The default of new transactions, which the worker does not use.
    package var isolation: String
    /// `true` if commits wait for a standby by default, and this role's or database's do not wait until it has them.
    package var waitsLessForStandby: Bool
    package var mayCreateSchema: Bool
    /// The rights that this user lacks on the program's tables, each as a table's name and the right.
    package var lackingRights: [String]
    package var hasAutovacuum: Bool
    /// `true` if this user can see when the transactions of other roles began.
    package var seesOtherSessions: Bool
    /// `true` if a completed commit survives a crash of the server.
    ///
    /// Each transaction itself asks the server to wait for that.
    package var isDurable: Bool
    package var maximumConnections: Int
    /// Connections that a pooler gave when as many were opened as a worker needs, or `nil` without one.
    package var pooledConnections: Int?

    package static let maximumWorkerConnections = 9
    /// The change to make if a pooler gives fewer connections.
    package static let poolerAdvice = """
        set pool_mode = transaction in pgbouncer.ini, or a default_pool_size of at least \(maximumWorkerConnections) for \
        each worker and four for commands
        """
}

extension ServerFacts {
    private static let query = SQLQuery(
        "facts of the server",
        sql: """
            SELECT current_setting('server_version'), current_user::text, pg_database_size(current_database()),
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_is_in_recovery(),
                (
                    SELECT CASE source
                        WHEN 'user' THEN format('ALTER ROLE %I', session_user)
                        WHEN 'database user' THEN format('ALTER ROLE %I IN DATABASE %I', session_user, current_database())
                        ELSE format('ALTER DATABASE %I', current_database())
                    END || ' SET default_transaction_read_only = off'
                    FROM pg_settings WHERE name = 'default_transaction_read_only' AND setting = 'on'
                ),
                current_setting('default_transaction_isolation'),
                current_setting('synchronous_standby_names') <> ''
                    AND current_setting('synchronous_commit') IN ('local', 'remote_write'),
                CASE WHEN to_regnamespace('refresh_worker') IS NULL
                    THEN has_database_privilege(current_database(), 'CREATE')
                    ELSE has_schema_privilege(to_regnamespace('refresh_worker')::oid, 'USAGE') END,
                (
                    SELECT coalesce(string_agg(privilege || ' on ' || relname, ', ' ORDER BY relname, privilege), '')
                    FROM pg_catalog.pg_class, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS privilege
                    WHERE relnamespace = to_regnamespace('refresh_worker') AND relkind = 'r'
                        AND relname <> 'schema_version' AND NOT has_table_privilege(pg_class.oid, privilege)
                ),
                current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on',
                pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
                current_setting('fsync') = 'on',
                current_setting('max_connections')::bigint,
                EXISTS (
                    SELECT 1 FROM pg_catalog.pg_class
                    WHERE relnamespace = to_regnamespace('refresh_worker') AND relname = 'schema_version'
                        AND has_schema_privilege(relnamespace, 'USAGE') AND has_table_privilege(oid, 'SELECT')
                )
            """
    )

    /// How soon a pooler must give a connection.
    private static let poolTimeout: Duration = .seconds(3)

    private static func queue(to address: DatabaseAddress, timeout: Duration) -> PostgresConnectionQueue {
        PostgresConnectionQueue(
            to: Connector(to: address, newestServer: nil),
            label: "postgres.facts",
            timeout: timeout,
            random: SystemRandom()
        )
    }

    /// Counts the connections that a pooler gives when a worker's are opened at once, and closes them.
    package mutating func countPooledConnections(to address: DatabaseAddress) async {
        guard isPooled else { return }
        let queues = (1...Self.maximumWorkerConnections).map { _ in Self.queue(to: address, timeout: Self.poolTimeout) }
        pooledConnections = await withTaskGroup(of: Bool.self) { group in
            for queue in queues {
                group.addTask {
                    do {
                        return try await queue.run { _, _ in true }
                    } catch {
                        // What is counted: the pooler has refused the connection, or given none in time.
                        return false
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        for queue in queues { await queue.close() }
    }

    /// Reads the facts from the server at an address, over a connection that is closed afterwards.
    package static func read(
        _ address: DatabaseAddress,
        time: any TimeSource,
        timeout: Duration = .seconds(10)
    ) async throws(StoreError) -> ServerFacts {
        let queue = queue(to: address, timeout: timeout)
        let outcome: Result<ServerFacts, StoreError>
        do {
            outcome = .success(
                try await queue.run { connection, deadline throws(StoreError) in
                    try read(connection, time: time, until: deadline)
                }
            )
        } catch {
            outcome = .failure(error)
        }
        await queue.close()
        return try outcome.get()
    }

    private static func read(
        _ connection: PostgresConnection,
        time: any TimeSource,
        until deadline: CallDeadline
    ) throws(StoreError) -> ServerFacts {
        let before = time.sinceBoot
        let results = try connection.run(StatementBatch(query), until: deadline)
        let roundTrip = time.sinceBoot - before
        let found = try results[0].first { row in
            let facts = ServerFacts(
                // Debian adds its own name in parentheses.
                version: String(row.text().prefix { $0 != " " }),
                user: row.text(),
                bytes: row.integer(),
                clock: row.time(),
                roundTrip: roundTrip,
                isEncrypted: connection.isEncrypted,
                isPooled: connection.isPooled,
                isStandby: row.flag(),
                writableBy: row.optionalText(),
                isolation: row.text(),
                waitsLessForStandby: row.flag(),
                mayCreateSchema: row.flag(),
                lackingRights: row.text().split(separator: ",").map { String($0.drop { $0 == " " }) },
                hasAutovacuum: row.flag(),
                seesOtherSessions: row.flag(),
                isDurable: row.flag(),
                maximumConnections: row.count()
            )
            return (facts, row.flag())
        }
        guard case (var facts, let mayReadSchema)? = found else {
            throw StoreError(.fault, "The server returned no row. This is a fault of refresh-worker.")
        }
        if mayReadSchema {
            facts.schema = try connection.run(StatementBatch(PostgresSchema.readVersion), until: deadline)[0]
                .first { $0.count() }
        }
        return facts
    }
}
