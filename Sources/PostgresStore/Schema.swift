import Store

/// Checks that a schema `refresh_worker` belongs to this program, and brings it to this version.
struct Schema {
    /// Arbitrary numbers that no other program locks: "RfWk" with one and two.
    static let migrationLock: Int64 = 0x5266_576b_0001
    static let writingLock: Int64 = 0x5266_576b_0002
    /// Held in shared mode by all writers, and exclusively by the note that the database was moved.
    static let moveLock: Int64 = 0x5266_576b_0003

    /// The query for four facts: the schema exists, belongs to this program, has content, and may be used.
    ///
    /// It reads the catalogue, which needs no permission: to_regclass is refused if the schema may not be used.
    private static let look = Query(
        "looking for the schema",
        """
        SELECT EXISTS (
                SELECT 1 FROM pg_catalog.pg_class
                WHERE relnamespace = to_regnamespace('refresh_worker') AND relname = 'schema_version'
            ),
            EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('refresh_worker')),
            to_regnamespace('refresh_worker') IS NOT NULL,
            coalesce(has_schema_privilege(to_regnamespace('refresh_worker')::oid, 'USAGE'), true),
            has_database_privilege(current_database(), 'CREATE'),
            quote_ident(current_database()), quote_ident(current_user::text)
        """
    )
    private static let readVersion = Query("schema version", "SELECT version FROM refresh_worker.schema_version")
    private static let takeTurn = Query("waiting for another to make the schema", "SELECT pg_advisory_xact_lock($1)")
    private static let begin = Query("begin", "BEGIN")
    private static let commit = Query("commit", "COMMIT")
    private static let makeSchema = "CREATE SCHEMA refresh_worker"
    private static let makeVersion = """
        CREATE TABLE refresh_worker.schema_version (
            only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
            version bigint NOT NULL
        );
        INSERT INTO refresh_worker.schema_version (version) VALUES (0);
        """

    private struct Sight {
        let isOurs: Bool
        let hasContent: Bool
        let isThere: Bool
        let mayUse: Bool
        let mayCreate: Bool
        let database: String
        let user: String
    }

    let migrations: [Migration]

    init(migrations: [Migration] = Migration.all) {
        self.migrations = migrations
    }

    /// Runs the steps that the database lacks, in one transaction.
    ///
    /// Workers that open a new database at once take turns, and each checks again in its turn. If no step is missing,
    /// nothing is written, so that a user without the right to create tables may work.
    func migrate(_ connection: Connection, until deadline: Deadline) throws(Failure) {
        guard try version(of: connection, until: deadline) < migrations.count else { return }
        var opening = Batch(Self.begin)
        opening.addLimits(until: deadline)
        _ = try connection.run(opening, until: deadline)
        do throws(Failure) {
            var turn = Batch()
            turn.add(Self.takeTurn) { $0.bind(Self.migrationLock) }
            _ = try connection.run(turn, until: deadline)
            let version = try version(of: connection, until: deadline)
            let sight = try look(connection, until: deadline)
            // IF NOT EXISTS would need the right to create one even if it exists.
            if !sight.isThere { try connection.execute("making the schema", Self.makeSchema, until: deadline) }
            if !sight.isOurs { try connection.execute("making the schema", Self.makeVersion, until: deadline) }
            for step in version..<max(version, migrations.count) {
                try connection.execute("migration \(step + 1)", migrations[step].statements, until: deadline)
            }
            let mark = "UPDATE refresh_worker.schema_version SET version = \(migrations.count)"
            try connection.execute("marking the schema", mark, until: deadline)
            _ = try connection.run(Batch(Self.commit), until: deadline)
        } catch {
            if !error.losesConnection { _ = try connection.run(Batch(.rollback), until: deadline) }
            throw error.state == "42501" ? try lacksRight(connection, until: deadline) : error
        }
    }

    /// Returns the version of the schema, 0 if there is none; throws for a database that this program must not touch.
    private func version(of connection: Connection, until deadline: Deadline) throws(Failure) -> Int {
        let sight = try look(connection, until: deadline)
        guard sight.mayUse else { throw Self.mayNotUse(sight) }
        guard sight.isOurs else {
            guard !sight.hasContent else {
                throw Failure(
                    .cannotOpen,
                    "The schema refresh_worker of \(connection.database) is another program's: refresh-worker leaves it alone. "
                        + "Name another database."
                )
            }
            guard sight.isThere || sight.mayCreate else { throw Self.mayNotCreate(sight) }
            return 0
        }
        let version = try connection.run(Batch(Self.readVersion), until: deadline)[0]
            .first { (row: inout Row) throws(Failure) in Int(row.integer()) }
        guard let version, version <= migrations.count else {
            throw Failure(
                .newerSchema,
                "\(connection.database.capitalizedFirst) has schema version \(version ?? -1), and this refresh-worker knows "
                    + "versions up to \(migrations.count). Upgrade refresh-worker; nothing was changed."
            )
        }
        return version
    }

    private func look(_ connection: Connection, until deadline: Deadline) throws(Failure) -> Sight {
        let sight = try connection.run(Batch(Self.look), until: deadline)[0].first { (row: inout Row) throws(Failure) in
            Sight(
                isOurs: row.flag(),
                hasContent: row.flag(),
                isThere: row.flag(),
                mayUse: row.flag(),
                mayCreate: row.flag(),
                database: row.text(),
                user: row.text()
            )
        }
        guard let sight else {
            throw Failure(.fault, "The server answered nothing. This is a fault of refresh-worker.")
        }
        return sight
    }

    private func lacksRight(_ connection: Connection, until deadline: Deadline) throws(Failure) -> Failure {
        let sight = try look(connection, until: deadline)
        return sight.isThere ? Self.mayNotUse(sight) : Self.mayNotCreate(sight)
    }

    private static func mayNotUse(_ sight: Sight) -> Failure {
        Failure(
            .cannotOpen,
            "The user \(sight.user) may not use the schema refresh_worker of the database \(sight.database). As its owner run: "
                + "GRANT USAGE, CREATE ON SCHEMA refresh_worker TO \(sight.user); and, where another user made the tables, "
                + "GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO \(sight.user);"
        )
    }

    private static func mayNotCreate(_ sight: Sight) -> Failure {
        Failure(
            .cannotOpen,
            "The user \(sight.user) may not make the schema refresh_worker in the database \(sight.database). As the database's "
                + "owner run: CREATE SCHEMA refresh_worker AUTHORIZATION \(sight.user);"
        )
    }
}

extension Batch {
    /// Creates a batch of one statement without values.
    init(_ query: Query) {
        self.init()
        add(query)
    }
}
