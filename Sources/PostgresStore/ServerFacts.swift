package import Clocks
package import Store

/// The facts that a server reports about itself and about this program's tables, queried without a write.
package struct ServerFacts: Hashable, Sendable {
    /// The version as people write it: 15.8.
    package var version: String
    /// The version of this program's tables; `nil` if there are none, or none that this user may read.
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
    package var isReadOnly: Bool
    package var mayCreateSchema: Bool
    /// The rights that this user lacks on the program's tables, each as a table's name and the right.
    package var lackingRights: [String]
    package var hasAutovacuum: Bool
    /// `true` if a completed commit survives a crash of the server; each transaction itself asks the server to wait for
    /// that.
    package var isDurable: Bool
    package var maximumConnections: Int

    package init(
        version: String,
        schema: Int? = nil,
        user: String,
        bytes: Int64,
        clock: Timestamp,
        roundTrip: Duration,
        isEncrypted: Bool,
        isPooled: Bool,
        isStandby: Bool,
        isReadOnly: Bool,
        mayCreateSchema: Bool,
        lackingRights: [String],
        hasAutovacuum: Bool,
        isDurable: Bool,
        maximumConnections: Int
    ) {
        self.version = version
        self.schema = schema
        self.user = user
        self.bytes = bytes
        self.clock = clock
        self.roundTrip = roundTrip
        self.isEncrypted = isEncrypted
        self.isPooled = isPooled
        self.isStandby = isStandby
        self.isReadOnly = isReadOnly
        self.mayCreateSchema = mayCreateSchema
        self.lackingRights = lackingRights
        self.hasAutovacuum = hasAutovacuum
        self.isDurable = isDurable
        self.maximumConnections = maximumConnections
    }
}

extension ServerFacts {
    private static let query = Query(
        "facts of the server",
        """
        SELECT current_setting('server_version'), current_user::text, pg_database_size(current_database()),
            (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_is_in_recovery(),
            current_setting('default_transaction_read_only') = 'on',
            CASE WHEN to_regnamespace('refresh_worker') IS NULL
                THEN has_database_privilege(current_database(), 'CREATE')
                ELSE has_schema_privilege('refresh_worker', 'USAGE') END,
            EXISTS (
                SELECT 1 FROM pg_catalog.pg_class
                WHERE relnamespace = to_regnamespace('refresh_worker') AND relname = 'schema_version'
                    AND has_schema_privilege(relnamespace, 'USAGE') AND has_table_privilege(oid, 'SELECT')
            ),
            (
                SELECT coalesce(string_agg(privilege || ' on ' || relname, ', ' ORDER BY relname, privilege), '')
                FROM pg_catalog.pg_class, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS privilege
                WHERE relnamespace = to_regnamespace('refresh_worker') AND relkind = 'r'
                    AND relname <> 'schema_version' AND NOT has_table_privilege(pg_class.oid, privilege)
            ),
            current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on',
            current_setting('fsync') = 'on',
            current_setting('max_connections')::bigint
        """
    )
    private static let schemaVersion = Query("schema version", "SELECT version FROM refresh_worker.schema_version")

    /// Reads the facts from the server at an address, over a connection that is closed afterwards.
    package static func read(
        _ address: DatabaseAddress,
        time: any TimeSource,
        timeout: Duration = .seconds(10)
    ) async throws(StoreError) -> ServerFacts {
        let queue = PostgresConnectionQueue(
            to: Connector(to: address, newestServer: nil),
            label: "postgres.facts",
            timeout: timeout,
            random: SystemRandom()
        )
        let outcome: Result<ServerFacts, StoreError>
        do {
            outcome = .success(
                try await queue.run { connection, deadline throws(StatementFailure) in
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
    ) throws(StatementFailure) -> ServerFacts {
        let before = time.sinceBoot
        let results = try connection.run(StatementBatch(query), until: deadline)
        let roundTrip = time.sinceBoot - before
        let found = try results[0].first { (row: inout Row) throws(StatementFailure) in
            let version = row.text()
            let user = row.text()
            let bytes = row.integer()
            let clock = Timestamp(milliseconds: row.integer())
            let isStandby = row.flag()
            let isReadOnly = row.flag()
            let mayCreateSchema = row.flag()
            let mayReadSchema = row.flag()
            let facts = ServerFacts(
                // Debian adds its own name in parentheses.
                version: String(version.prefix { $0 != " " }),
                user: user,
                bytes: bytes,
                clock: clock,
                roundTrip: roundTrip,
                isEncrypted: connection.isEncrypted,
                isPooled: connection.isPooled,
                isStandby: isStandby,
                isReadOnly: isReadOnly,
                mayCreateSchema: mayCreateSchema,
                lackingRights: row.text().split(separator: ",").map { String($0.drop { $0 == " " }) },
                hasAutovacuum: row.flag(),
                isDurable: row.flag(),
                maximumConnections: Int(row.integer())
            )
            return (facts, mayReadSchema)
        }
        guard case (var facts, let mayReadSchema)? = found else {
            throw StatementFailure(.fault, "The server returned no row. This is a fault of refresh-worker.")
        }
        if mayReadSchema {
            facts.schema = try connection.run(StatementBatch(schemaVersion), until: deadline)[0]
                .first { (row: inout Row) throws(StatementFailure) in Int(row.integer()) }
        }
        return facts
    }
}
