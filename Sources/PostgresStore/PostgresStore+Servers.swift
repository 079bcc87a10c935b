private import Clocks
private import Dispatch
package import Store
private import Synchronization

extension Query {
    fileprivate static let readMarks = Query(
        "server and store id",
        "SELECT key, value FROM refresh_worker.meta WHERE key IN ('server', 'store_id')"
    )
    /// Stores the server, unless another worker has recorded a higher timeline of the same cluster.
    static let recordServer = Query(
        "record server",
        """
        INSERT INTO refresh_worker.meta AS old (key, value) VALUES ('server', $1 || ' ' || $2)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
        WHERE split_part(old.value, ' ', 1) <> $1 OR split_part(old.value, ' ', 2)::bigint < $2
        """
    )
}

/// Surveys all hosts of an address from time to time.
final class HostSurvey: Sendable {
    /// The interval at which a worker with good connections checks if another host was promoted.
    private static let interval: Duration = .seconds(30)
    /// The time for a host to respond; a slower one is left out.
    private static let patience: Duration = .seconds(2)

    private let last = Mutex<BootInstant?>(nil)

    /// Returns when all hosts have responded, or their time is over.
    func survey(_ connector: Connector) async {
        guard connector.hasSeveralHosts else { return }
        last.withLock { $0 = SystemTime().sinceBoot }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                connector.survey(within: Self.patience)
                continuation.resume()
            }
        }
    }

    /// Starts a survey in the background if the last one is long ago.
    func surveyIfDue(_ connector: Connector) {
        let now = SystemTime().sinceBoot
        let isDue = last.withLock { last in last.map { now - $0 >= Self.interval } ?? true }
        if isDue { Task { await survey(connector) } }
    }
}

extension PostgresStore {
    /// Determines which server of an address is the newest before any of them is used.
    func survey() async {
        await surveyor.survey(connector)
    }

    /// Compares the server with the one that the database was last used on, and stores the identity of the tables.
    func recognize(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StatementFailure) {
        var marks: [String: String] = [:]
        _ = try connection.run(StatementBatch(.readMarks), until: deadline)[0].rows {
            (row: inout Row) throws(StatementFailure) in
            marks[row.text()] = row.text()
        }
        lineage.storeID = marks["store_id"]
        guard let identity = connection.identity, let recorded = marks["server"].flatMap({ ServerIdentity($0) }) else {
            return
        }
        let relation = lineage.compare(recorded: recorded, with: identity, at: connection.database)
        try Connector.judge(relation, identity, connection.database)
    }

    package func takeIncidents() -> [StoreIncident] { lineage.takeIncidents() }
}
