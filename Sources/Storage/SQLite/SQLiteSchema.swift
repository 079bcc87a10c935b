private import Base

/// Checks that a file belongs to this program, and brings it to this version of the schema.
struct SQLiteSchema {
    /// "RfWk": the mark in the file's header that shows which program it belongs to
    /// (https://sqlite.org/pragma.html#pragma_application_id).
    static let applicationID: Int64 = 0x5266_576b

    private static let readApplicationID = SQLQuery("application id", sql: "PRAGMA application_id")
    static let readVersion = SQLQuery("schema version", sql: "PRAGMA user_version")
    private static let countObjects = SQLQuery("schema objects", sql: "SELECT count(*) FROM sqlite_schema")
    private static let writeApplicationID = SQLQuery(
        "mark the database",
        sql: "PRAGMA application_id = \(applicationID)"
    )

    private static let countWorkerTables = SQLQuery(
        "tables of workers",
        sql: "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'workers'"
    )
    /// The columns of a worker that every version has.
    private static let liveWorkerIDs = SQLQuery(
        "live workers of any version",
        sql: "SELECT worker_id FROM workers WHERE epoch = ? AND heartbeat >= ? ORDER BY worker_id"
    )

    var steps = SchemaStep.all

    /// Returns the version of the schema in the file, 0 for an empty one. It throws for a database that this program
    /// must not touch. It reads one snapshot, because another process might be creating the schema at the same time.
    func version(of connection: SQLiteConnection) throws(StoreError) -> Int {
        guard !connection.isInTransaction else { return try storedVersion(in: connection) }
        return try connection.read { () throws(StoreError) in try storedVersion(in: connection) }
    }

    private func storedVersion(in connection: SQLiteConnection) throws(StoreError) -> Int {
        let version = Int(try connection.integer(Self.readVersion))
        if try connection.integer(Self.readApplicationID) != Self.applicationID {
            guard version == 0, try connection.integer(Self.countObjects) == 0 else {
                throw StoreError(
                    .cannotOpen,
                    "\(connection.path) is another program's database: refresh-worker does not change it. Name "
                        + "another file."
                )
            }
        }
        if version > steps.count, try oldestUser(of: version, in: connection) > steps.count {
            throw StoreError(newerSchema: version, of: "the database \(connection.path)", supported: steps.count)
        }
        return version
    }

    /// Returns the oldest version whose programs can use the newer database.
    private func oldestUser(of version: Int, in connection: SQLiteConnection) throws(StoreError) -> Int {
        guard try connection.integer(Self.countWorkerTables) > 0 else { return version }
        let note = SQLStatement(.readMeta, SchemaStep.noteOfOldestUser(of: version))
        return try connection.rows(note) { $0.text() }.first.flatMap { Int($0) } ?? version
    }

    /// Runs the steps that the file lacks, each in a transaction together with its number.
    ///
    /// Processes that open a new file at the same time wait for each other, and each checks again after its wait. A
    /// step that is not additive fails while a worker is live: an older version's statements would fail on the new
    /// schema, so it could not store the results that it has in memory, which might include rotated refresh tokens.
    /// `onUpgrade` is called before a file with content is changed.
    func migrate(
        _ connection: SQLiteConnection,
        at time: LeaseTime,
        onUpgrade: (_ from: Int, _ to: Int) -> Void = { _, _ in }
    ) throws(StoreError) {
        let found = try version(of: connection)
        while true {
            let next = try version(of: connection)
            guard next < steps.count else { return }
            try connection.write(evenIfMoved: true) { () throws(StoreError) in
                guard try version(of: connection) == next else { return }
                let step = next + 1
                let workers = steps[next].isAdditive ? [] : try liveWorkers(of: connection, at: time)
                guard workers.isEmpty else {
                    throw StoreError(step: step, of: "the database \(connection.path)", usedBy: workers)
                }
                if found > 0 { onUpgrade(next, step) }
                try connection.execute(steps[next].statements(for: .sqlite), during: "migration \(step)")
                try connection.run(Self.writeApplicationID)
                try connection.execute(SQLQuery("migration \(step)", sql: "PRAGMA user_version = \(step)"))
                if let note = SchemaStep.noteOldestUser(after: steps[...next]) { try connection.run(note) }
            }
        }
    }

    /// Returns the ids of the workers of any version that use the file.
    func liveWorkers(of connection: SQLiteConnection, at time: LeaseTime) throws(StoreError) -> [String] {
        guard try connection.integer(Self.countWorkerTables) > 0 else { return [] }
        let oldest = time.instant.milliseconds - WorkerReport.lifetime.wholeMilliseconds
        return try connection.rows(SQLStatement(Self.liveWorkerIDs, .text(time.epoch), .integer(oldest))) { $0.text() }
    }
}
