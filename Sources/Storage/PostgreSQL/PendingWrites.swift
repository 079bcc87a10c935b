/// The writes of a transaction that are not sent yet.
struct PendingWrites {
    static let channel = "refresh_worker_due"

    private static let addCounts = SQLQuery(
        "count grants",
        """
        INSERT INTO refresh_worker.grant_counts AS old (state, grants) SELECT * FROM unnest($1::text[], $2::bigint[])
        ON CONFLICT (state) DO UPDATE SET grants = old.grants + excluded.grants
        """
    )
    private static let notify = SQLQuery("notify", "SELECT pg_notify($1, '')")

    private static let insertEvents = GrantEvent.added.insertMany("insert events")
    private static let trimEvents = SQLQuery.trimEvents(
        ofGrant: "changed.id",
        from: " USING unnest($1::bigint[]) AS changed (id)"
    )

    /// The grants to store.
    private(set) var grants: [GrantID: Grant] = [:]
    /// The ids of those that differ in more than a refresh changes.
    private var whole: Set<GrantID> = []
    private var counts: [GrantState: Int64] = [:]
    var events: [GrantEvent] = []
    /// The statements that add notices to the outbox.
    var notices: [SQLStatement] = []
    var healths: [String: [UInt8]] = [:]
    /// `true` if workers must be notified of new due times.
    private var hasConnections = false

    var isEmpty: Bool {
        grants.isEmpty && counts.isEmpty && events.isEmpty && notices.isEmpty && healths.isEmpty && !hasConnections
    }

    mutating func update(_ grant: Grant, from former: Grant, keepsSeldomChanged: Bool) {
        grants[grant.id] = grant
        if !keepsSeldomChanged { whole.insert(grant.id) }
        if former.state != grant.state {
            count(former.state, by: -1)
            count(grant.state, by: 1)
        }
    }

    mutating func count(_ state: GrantState, by difference: Int64) {
        counts[state, default: 0] += difference
    }

    /// Returns the statement that changes the numbers of grants in each state by these; `nil` if none changes.
    static func count(_ counts: [GrantState: Int64]) -> SQLStatement? {
        let changed = counts.filter { $0.value != 0 }.sorted { $0.key.rawValue < $1.key.rawValue }
        guard !changed.isEmpty else { return nil }
        return SQLStatement(addCounts, .texts(changed.map(\.key.rawValue)), .integers(changed.map(\.value)))
    }

    /// Adds the statements that send all writes; with `notifying` also a notification to the listeners, which the
    /// commit sends.
    mutating func move(to batch: inout StatementBatch, notifying: Bool) {
        let sorted = grants.values.sorted { $0.id < $1.id }
        PostgresGrantRow.addUpdates(
            whole: sorted.filter { whole.contains($0.id) },
            refreshed: sorted.filter { !whole.contains($0.id) },
            to: &batch
        )
        if !events.isEmpty {
            batch.add(SQLStatement(Self.insertEvents, GrantEvent.added.arrays(of: events.map { (0, $0) })))
            batch.add(Self.trimEvents, .ids(Set(events.map(\.grant)).sorted()))
        }
        for notice in notices { batch.add(notice) }
        for (client, health) in healths.sorted(by: { $0.key < $1.key }) {
            batch.add(.setHealth, .text(client), .bytes(health))
        }
        if let statement = Self.count(counts) { batch.add(statement) }
        let connects = hasConnections || events.contains { $0.kind == .connected }
        self = PendingWrites()
        if notifying, connects {
            batch.add(Self.notify, .text(Self.channel))
        } else {
            hasConnections = connects
        }
    }
}
