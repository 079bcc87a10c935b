extension PostgresQuery {
    fileprivate static let readServerNotes = PostgresQuery(
        "server and store id",
        "SELECT key, value FROM refresh_worker.meta WHERE key IN ('server', 'store_id')"
    )
    /// Stores the server, unless another worker has recorded a higher timeline of the same cluster.
    static let recordServer = PostgresQuery(
        "record server",
        """
        INSERT INTO refresh_worker.meta AS old (key, value) VALUES ('server', $1 || ' ' || $2)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
        WHERE split_part(old.value, ' ', 1) <> $1 OR split_part(old.value, ' ', 2)::bigint < $2
        """
    )
}

extension PostgresStore {
    /// Determines which server of an address is the newest before any of them is used.
    func survey() async {
        await hostSurvey.survey(connector)
    }

    /// Compares the server with the one that the database was last used on, and stores the identity of the tables.
    func checkServer(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StatementFailure) {
        var notes: [String: String] = [:]
        _ = try connection.run(StatementBatch(.readServerNotes), until: deadline)[0].rows {
            (row: inout PostgresRow) throws(StatementFailure) in
            notes[row.text()] = row.text()
        }
        newestServer.storeID = notes["store_id"]
        guard let identity = connection.identity, let recorded = notes["server"].flatMap({ ServerIdentity($0) }) else {
            return
        }
        let relation = newestServer.compare(recorded: recorded, with: identity, at: connection.database)
        try Connector.requireCurrent(relation, identity, connection.database)
    }

    package func takeIncidents() -> [StoreIncident] { newestServer.takeIncidents() }
}
