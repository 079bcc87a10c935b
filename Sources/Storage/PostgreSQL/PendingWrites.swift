import Base

/// A notice that will be added to the outbox.
struct PendingNotice {
    let content: Notice.Content
    let userID: String
    let at: Timestamp
    let nonce: UInt64
}

/// The writes of a transaction that are not sent yet.
struct PendingWrites {
    static let channel = "refresh_worker_due"

    private static let setHealth = PostgresQuery(
        "set client health",
        """
        INSERT INTO refresh_worker.clients (client_id, health) VALUES ($1, $2)
        ON CONFLICT (client_id) DO UPDATE SET health = $2
        """
    )
    private static let addCounts = PostgresQuery(
        "count grants",
        """
        INSERT INTO refresh_worker.grant_counts AS old (state, grants) SELECT * FROM unnest($1::text[], $2::bigint[])
        ON CONFLICT (state) DO UPDATE SET grants = old.grants + excluded.grants
        """
    )
    private static let notify = PostgresQuery("notify", "SELECT pg_notify($1, '')")

    private static let eventColumns: [Table<GrantEvent>.Column] = [
        .init("grant_id", .integer { $0.grant.rawValue }),
        .init("at", .integer { $0.at.milliseconds }),
        .init("kind", .text { $0.kind.rawValue }),
        .init("from_state", .text { $0.from?.rawValue }),
        .init("to_state", .text { $0.to.rawValue }),
        .init("reason", .text { $0.reason.rawValue }),
        .init("generation", .integer { $0.generation }),
    ]
    private static let insertEvents = Table.insert("insert events", into: "refresh_worker.grant_events", eventColumns)

    /// Removes all but the last events of grants, and keeps their last connections, with which security events are
    /// compared.
    private static let trimEvents = PostgresQuery(
        "trim events",
        """
        DELETE FROM refresh_worker.grant_events AS old USING unnest($1::bigint[]) AS changed (id)
        WHERE old.grant_id = changed.id
            AND old.seq <= (SELECT seq FROM refresh_worker.grant_events WHERE grant_id = changed.id
                ORDER BY seq DESC LIMIT 1 OFFSET \(Retention.eventsPerGrant))
            AND (old.kind <> '\(GrantEvent.Kind.connected.rawValue)' OR EXISTS (
                SELECT 1 FROM refresh_worker.grant_events AS later WHERE later.grant_id = old.grant_id
                    AND later.seq > old.seq AND later.kind = '\(GrantEvent.Kind.connected.rawValue)'))
        """
    )

    /// The grants to store.
    private(set) var grants: [GrantID: Grant] = [:]
    /// The ids of those that differ in more than a refresh changes.
    private var whole: Set<GrantID> = []
    private var counts: [GrantState: Int64] = [:]
    var events: [GrantEvent] = []
    var notices: [PendingNotice] = []
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
            batch.add(Self.insertEvents) { Table.bind(events, Self.eventColumns, to: &$0) }
            let changed = Set(events.map(\.grant)).sorted()
            batch.add(Self.trimEvents) { $0.bind(integers: changed) { $0.rawValue } }
        }
        for notice in notices { batch.addNotice(notice) }
        for (client, health) in healths.sorted(by: { $0.key < $1.key }) {
            batch.add(Self.setHealth) {
                $0.bind(client)
                $0.bind(health)
            }
        }
        let changedCounts = counts.filter { $0.value != 0 }.sorted { $0.key.rawValue < $1.key.rawValue }
        if !changedCounts.isEmpty {
            batch.add(Self.addCounts) {
                $0.bind(texts: changedCounts) { $0.key.rawValue }
                $0.bind(integers: changedCounts) { $0.value }
            }
        }
        let connects = hasConnections || events.contains { $0.kind == .connected }
        self = PendingWrites()
        if notifying, connects {
            batch.add(Self.notify) { $0.bind(Self.channel) }
        } else {
            hasConnections = connects
        }
    }
}
