private import Base

/// Checks that the schema of a connection belongs to this program, and brings it to this version.
struct PostgresSchema {
    /// The query for facts about the schema: it exists, belongs to this program, has content, and can be used, by whom.
    ///
    /// It reads the catalogue, which needs no permission: to_regclass is refused if the schema cannot be used.
    private static let catalogQuery = SQLQuery(
        "reading the catalogue",
        sql: """
            SELECT EXISTS (
                    SELECT 1 FROM pg_catalog.pg_class
                    WHERE relnamespace = to_regnamespace('refresh_worker') AND relname = 'schema_version'
                ),
                EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('refresh_worker')),
                to_regnamespace('refresh_worker') IS NOT NULL,
                coalesce(has_schema_privilege(to_regnamespace('refresh_worker')::oid, 'USAGE'), true),
                has_database_privilege(current_database(), 'CREATE'),
                quote_ident(current_database()), quote_ident(current_user::text),
                (
                    SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_catalog.pg_class
                    WHERE relnamespace = to_regnamespace('refresh_worker') AND relname = 'schema_version'
                )
            """
    )
    static let readVersion = SQLQuery("schema version", sql: "SELECT version FROM refresh_worker.schema_version")
    private static let takeLock = SQLQuery(
        "waiting for another process to create the schema",
        sql: "SELECT pg_advisory_xact_lock($1)"
    )
    /// The columns of a worker that every version has.
    private static let liveWorkerIDs = SQLQuery(
        "live workers of any version",
        sql: """
            SELECT worker_id FROM refresh_worker.workers
            WHERE abs(\(SQLQuery.readClock) - heartbeat) <= $1 ORDER BY worker_id
            """
    )
    /// All statements wait behind a step that waits for the lock of a table, so it waits less than their callers do.
    ///
    /// The start of a worker tries again.
    private static let limitLockWait = "SET LOCAL lock_timeout = '1s'"
    /// Fences workers of an older version that were suspended, and so did not count as live: ``SchemaStep/useCheck``.
    private static let changeStoreID = """
        UPDATE refresh_worker.meta SET value = gen_random_uuid()::text WHERE key = 'store_id'
        """
    private static let createSchema = "CREATE SCHEMA refresh_worker"
    private static let createVersion = """
        CREATE TABLE refresh_worker.schema_version (
            only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
            version bigint NOT NULL
        );
        INSERT INTO refresh_worker.schema_version (version) VALUES (0);
        """

    private struct Catalog {
        let isOwn: Bool
        let hasContent: Bool
        let exists: Bool
        let mayUse: Bool
        let mayCreate: Bool
        let schema: SchemaName
        let database: String
        let user: String
        /// The owner of the tables, if they are this program's.
        let owner: String?
    }

    var steps = SchemaStep.all
    /// insufficient_privilege
    fileprivate static let noRight = "42501"
    /// lock_not_available
    fileprivate static let noLock = "55P03"

    /// Runs the steps that the database lacks, in one transaction.
    ///
    /// Workers that open a new database at the same time wait for each other, and each checks again after its wait. If
    /// no step is missing, nothing is written, so that a user without the right to create tables can work. A step that
    /// is not additive fails while a worker is live, as in ``SQLiteSchema``.
    ///
    /// Returns what keeps steps that can wait from being done: another session's lock, or tables of another owner. The
    /// next start tries again.
    @discardableResult
    func migrate(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError) -> StoreError? {
        let stored = try version(of: connection, until: deadline)
        guard stored < steps.count else { return nil }
        do throws(StoreError) {
            try runMissingSteps(on: connection, until: deadline)
            return nil
        } catch {
            let canWait = stored > 0 && steps.dropFirst(stored).allSatisfy(\.canWait)
            guard canWait, error.isObstacleOfChange else { throw error }
            return error
        }
    }

    private func runMissingSteps(on connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError) {
        _ = try connection.run(StatementBatch(until: deadline), until: deadline)
        do throws(StoreError) {
            let lock = StatementBatch(Self.takeLock, .integer(connection.database.schema.migrationLock))
            _ = try connection.run(lock, until: deadline)
            let version = try version(of: connection, until: deadline)
            try connection.execute(Self.limitLockWait, named: "limiting the wait for locks", until: deadline)
            let isBreaking = version > 0 && steps.dropFirst(version).contains { !$0.isAdditive }
            if isBreaking { try refuseWorkers(of: connection, until: deadline) }
            let catalog = try readCatalog(connection, until: deadline)
            // IF NOT EXISTS would need the right to create one even if it exists.
            if !catalog.exists {
                try connection.execute(Self.createSchema, named: "creating the schema", until: deadline)
            }
            if !catalog.isOwn {
                try connection.execute(Self.createVersion, named: "creating the schema", until: deadline)
            }
            for step in version..<max(version, steps.count) {
                try connection.execute(
                    steps[step].statements(for: .postgres),
                    named: "migration \(step + 1)",
                    until: deadline
                )
            }
            if version < steps.count {
                let mark = "UPDATE refresh_worker.schema_version SET version = \(steps.count)"
                try connection.execute(mark, named: "marking the schema", until: deadline)
            }
            if isBreaking { try connection.execute(Self.changeStoreID, named: "marking the schema", until: deadline) }
            var end = StatementBatch()
            if let note = SchemaStep.noteOldestUser(after: steps[...]) { end.add(note) }
            end.add(.commit)
            _ = try connection.run(end, until: deadline)
        } catch {
            if !error.losesConnection { _ = try connection.run(StatementBatch(.rollback), until: deadline) }
            throw error.sqlState == Self.noRight ? try missingRight(connection, until: deadline) : error
        }
    }

    /// Returns the version of the schema, 0 if there is none, and throws for a database that this program must not
    /// touch.
    private func version(of connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError)
        -> Int
    {
        let catalog = try readCatalog(connection, until: deadline)
        guard catalog.mayUse else { throw Self.cannotUse(catalog) }
        guard catalog.isOwn else {
            guard !catalog.hasContent else {
                throw StoreError(
                    .cannotOpen,
                    "\(connection.database.withSchema.capitalizedFirst) is another program's: refresh-worker does not "
                        + "change it. Name another database or schema."
                )
            }
            guard catalog.exists || catalog.mayCreate else { throw Self.cannotCreate(catalog) }
            return 0
        }
        let version = try connection.run(StatementBatch(Self.readVersion), until: deadline)[0].first { $0.count() }
        guard let version else {
            throw StoreError(
                .cannotOpen,
                "The table schema_version of \(connection.database.withSchema) is empty, so the version of its tables "
                    + "is not known. Restore a backup of this schema."
            )
        }
        if version > steps.count, try oldestUser(of: version, on: connection, until: deadline) > steps.count {
            throw StoreError(newerSchema: version, of: connection.database.description, supported: steps.count)
        }
        return version
    }

    /// Returns the oldest version whose programs can use the newer database.
    private func oldestUser(of version: Int, on connection: PostgresConnection, until deadline: CallDeadline)
        throws(StoreError) -> Int
    {
        let batch = StatementBatch(.readMeta, SchemaStep.noteOfOldestUser(of: version))
        let note: String? = try connection.run(batch, until: deadline)[0].first { $0.text() }
        return note.flatMap { Int($0) } ?? version
    }

    private func refuseWorkers(of connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError) {
        let batch = StatementBatch(Self.liveWorkerIDs, .integer(WorkerReport.lifetime.wholeMilliseconds))
        let workers = try connection.run(batch, until: deadline)[0].rows { $0.text() }
        guard workers.isEmpty else {
            throw StoreError(step: steps.count, of: connection.database.description, usedBy: workers)
        }
    }

    private func readCatalog(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError)
        -> Catalog
    {
        let catalog: Catalog? = try connection.run(StatementBatch(Self.catalogQuery), until: deadline)[0].first { row in
            Catalog(
                isOwn: row.flag(),
                hasContent: row.flag(),
                exists: row.flag(),
                mayUse: row.flag(),
                mayCreate: row.flag(),
                schema: connection.database.schema,
                database: row.text(),
                user: row.text(),
                owner: row.optionalText()
            )
        }
        guard let catalog else {
            throw StoreError(.fault, "The server returned no row. This is a fault of refresh-worker.")
        }
        return catalog
    }

    private func missingRight(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError)
        -> StoreError
    {
        let catalog = try readCatalog(connection, until: deadline)
        if let owner = catalog.owner, owner != catalog.user { return Self.mustOwn(catalog, owner: owner) }
        return catalog.exists ? Self.cannotUse(catalog) : Self.cannotCreate(catalog)
    }

    /// The owner can be a superuser, so the advice is not to grant the owner's role.
    private static func mustOwn(_ catalog: Catalog, owner: String) -> StoreError {
        let change = """
            DO $$ DECLARE change text; BEGIN FOR change IN SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, \
            '\(catalog.user)') FROM pg_class WHERE relnamespace = '\(catalog.schema.identifier)'::regnamespace AND \
            relkind = 'r' LOOP EXECUTE change; END LOOP; END $$;
            """
        var error = StoreError(
            .cannotOpen,
            "The user \(catalog.user) cannot bring the schema \(catalog.schema.text) of the database "
                + "\(catalog.database) up to date, because \(owner) owns its tables. As an administrator run: \(change)"
        )
        error.sqlState = noRight
        return error
    }

    private static func cannotUse(_ catalog: Catalog) -> StoreError {
        StoreError(
            .cannotOpen,
            "The user \(catalog.user) cannot use the schema \(catalog.schema.text) of the database "
                + "\(catalog.database). As its owner run: GRANT USAGE, CREATE ON SCHEMA \(catalog.schema.identifier) "
                + "TO \(catalog.user); and, if another user created the tables, GRANT ALL ON ALL TABLES IN SCHEMA "
                + "\(catalog.schema.identifier) TO \(catalog.user);"
        )
    }

    private static func cannotCreate(_ catalog: Catalog) -> StoreError {
        StoreError(
            .cannotOpen,
            "The user \(catalog.user) cannot create the schema \(catalog.schema.text) in the database "
                + "\(catalog.database). As the database's owner run: CREATE SCHEMA \(catalog.schema.identifier) "
                + "AUTHORIZATION \(catalog.user);"
        )
    }
}

extension StoreError {
    /// `true` if a change of the tables fails because of another session or of a right, which pass or can be given.
    fileprivate var isObstacleOfChange: Bool {
        [PostgresSchema.noRight, PostgresSchema.noLock].contains(sqlState)
    }
}

extension StoreIncident {
    static func changeWaits(_ obstacle: StoreError) -> StoreIncident {
        StoreIncident(kind: .changeWaits, text: obstacle.message)
    }
}
