import Store

/// Tells whose database a file is, and brings it to this program's version of the schema.
struct Schema {
    /// "RfWk": says in the file's header whose database it is (https://sqlite.org/pragma.html#pragma_application_id).
    static let applicationID: Int64 = 0x5266_576b

    private static let readApplicationID = Query("application id", "PRAGMA application_id")
    private static let readVersion = Query("schema version", "PRAGMA user_version")
    private static let countObjects = Query("schema objects", "SELECT count(*) FROM sqlite_schema")
    private static let writeApplicationID = Query("mark the database", "PRAGMA application_id = \(applicationID)")

    let migrations: [Migration]

    init(migrations: [Migration] = Migration.all) {
        self.migrations = migrations
    }

    /// The version of the schema in the file, 0 for an empty one; throws for a database that this program must not touch.
    func version(of connection: Connection) throws(StoreError) -> Int {
        let version = Int(try connection.integer(Self.readVersion))
        if try connection.integer(Self.readApplicationID) != Self.applicationID {
            guard version == 0, try connection.integer(Self.countObjects) == 0 else {
                throw StoreError(
                    .cannotOpen,
                    "\(connection.path) is another program's database: refresh-worker leaves it alone. Name another file."
                )
            }
        }
        guard version <= migrations.count else {
            throw StoreError(
                .newerSchema,
                "The database \(connection.path) has schema version \(version), and this refresh-worker knows versions up to "
                    + "\(migrations.count). Upgrade refresh-worker; nothing was changed."
            )
        }
        return version
    }

    /// Runs the steps that the file lacks, each in a transaction together with its number.
    ///
    /// Processes that open a new file at once take turns: each looks again when its turn has come.
    func migrate(_ connection: Connection) throws(StoreError) {
        while try version(of: connection) < migrations.count {
            try connection.write { () throws(StoreError) in
                let version = try version(of: connection)
                guard version < migrations.count else { return }
                let step = version + 1
                try connection.execute(Query("migration \(step)", migrations[version].statements))
                try connection.run(Self.writeApplicationID)
                try connection.execute(Query("migration \(step)", "PRAGMA user_version = \(step)"))
            }
        }
    }
}
