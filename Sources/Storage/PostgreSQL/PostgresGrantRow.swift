import Base

/// The rows of a grant in `grants` and `grant_schedule`, with the columns of ``Grant/table``.
enum PostgresGrantRow {
    /// The two rows of a grant, as a source of ``columns``.
    static let source = "refresh_worker.grants AS g JOIN refresh_worker.grant_schedule AS s ON s.grant_id = g.id"
    /// The same for statements that lock nothing: the server finds the schedule of each grant by its id.
    ///
    /// For a page after an id it would otherwise read the whole schedule before that id, so all pages would take a time
    /// that grows with the square of their number.
    private static let unlockedSource = """
        refresh_worker.grants AS g
        CROSS JOIN LATERAL (SELECT * FROM refresh_worker.grant_schedule WHERE grant_id = g.id OFFSET 0) AS s
        """

    private static let key = ["id"]
    private static let fixed = ["user_id", "connection", "created_at"]
    /// The columns that the statement for a refresh omits if none of them changes, which
    /// ``keepsSeldomChanged(_:from:)`` decides.
    private static let seldomChanged = [
        "client_id", "google_user_id", "email", "name", "email_is_verified", "scope", "state", "refresh_expires_at",
        "refresh_consented_at", "expiry_noticed", "refresh_key", "refresh_prefix_mark", "refresh_digest_mark",
        "access_key", "access_type", "binding_key", "refresh_token", "suspected_since", "quick_refreshes",
        "answer_lost_at", "rotation_claims", "former_tokens_until", "labels",
    ]
    /// All others: every update writes them.
    private static let oftenChanged = Grant.table.without(["due_at"] + key + fixed + seldomChanged).columns.map(\.name)

    /// The due time is in `grant_schedule`.
    ///
    /// Of a changed row, the server logs all bytes from the first to the last that differs. So the columns that a
    /// refresh changes are together at the end, and the refresh token is not logged each time.
    static let grants = Grant.table.only(key + fixed + seldomChanged + oftenChanged)
    static let schedule = Table<Grant>(
        "grant_schedule",
        [
            .init("grant_id", .integer, "PRIMARY KEY REFERENCES refresh_worker.grants (id)") {
                .integer($0.id.rawValue)
            },
            .init("client_id", .text, "NOT NULL") { .text($0.clientID) },
            .init("due_at", .integer) { .time($0.dueAt) },
            .init("lease_owner", .text) { .text($0.lease?.owner) },
            .init("lease_claim", .integer) { .integer($0.lease?.claim) },
            .init("lease_epoch", .text) { .text($0.lease?.epoch) },
            .init("lease_until", .integer) { .integer($0.lease?.until.milliseconds) },
        ]
    )

    /// Returns the columns of a grant in ``source``.
    private static func names(of table: Table<Grant>) -> String {
        table.columns.map { ($0.name == "due_at" ? "s." : "g.") + $0.name }.joined(separator: ", ")
    }

    /// The columns that ``GrantRowReader`` expects from ``source``.
    static let columns = names(of: Grant.readColumns) + ", s.lease_owner, s.lease_claim, s.lease_epoch, s.lease_until"
    /// The beginning of a query for the columns of ``Grant/table``.
    static let selectAll = "SELECT \(names(of: Grant.table)) FROM \(unlockedSource)"

    static let queries = GrantQueries(columns: columns, source: unlockedSource)
    /// They lock grants against claims and plain refreshes until the transaction ends.
    ///
    /// Both rows are locked: only a locked row is read again if a plain refresh has changed it since the snapshot.
    static let lockingQueries = GrantQueries(columns: columns, source: source, lock: lock)
    static let lock = " FOR UPDATE OF s FOR NO KEY UPDATE OF g"

    static let changing = Grant.table.only(key + seldomChanged + oftenChanged)
    static let refreshed = Grant.table.only(key + oftenChanged)

    private static let insertGrant = grants.insert(
        "insert grant",
        where: """
            NOT EXISTS (
                SELECT 1 FROM refresh_worker.users WHERE users.user_id = $2 AND deleted_until IS NOT NULL
            )
            """
    )
    /// Runs only if the grant exists: its foreign key would otherwise end the whole transaction.
    private static let insertSchedule = schedule.insert(
        "insert schedule",
        where: "EXISTS (SELECT 1 FROM refresh_worker.grants WHERE grants.id = $1)"
    )
    private static let insertGrants = SQLQuery(
        "insert grants",
        sql: "\(grants.insertMany("").text) WHERE \(isNotDeleted)"
    )
    /// A subquery for each row, and no join: a prepared join can have a plan from a time at which the table was small.
    private static let isNotDeleted = """
        (SELECT deleted_until FROM refresh_worker.users WHERE users.user_id = new.user_id) IS NULL
        """
    private static let insertSchedules = schedule.insertMany("insert schedules")
    private static let updateWhole = update("update whole grants", changing)
    private static let updateRefreshed = update("update grants", refreshed)
    private static let updateSchedule = schedule.updateMany("update schedule")

    private static func update(_ name: String, _ columns: Table<Grant>) -> SQLQuery {
        SQLQuery(
            name,
            sql: """
                UPDATE refresh_worker.grants AS old SET \(columns.changes), \(Grant.increment)
                FROM \(columns.newRows) WHERE old.id = new.id
                """
        )
    }

    /// Returns the statements that add a grant.
    ///
    /// The number of rows that the first one changes shows if it was added.
    static func insert(_ grant: Grant) -> [SQLStatement] {
        [
            SQLStatement(insertGrant, Self.grants.values(of: grant)),
            SQLStatement(insertSchedule, schedule.values(of: grant)),
        ]
    }

    /// Returns the statements that add grants.
    ///
    /// The second one violates a foreign key if the first one leaves out the grant of a deleted user.
    ///
    /// The rows are in the order of their ids, which is that of their due times (``GrantID/phase``). So the grants of a
    /// page fall due within seconds, and the server logs an image of the page once for all of them.
    static func insert(_ grants: [Grant]) -> [SQLStatement] {
        let sorted = grants.sorted { $0.id < $1.id }
        return [
            SQLStatement(insertGrants, Self.grants.arrays(of: sorted)),
            SQLStatement(insertSchedules, schedule.arrays(of: sorted)),
        ]
    }

    /// Returns the statements that add rows of ``Grant/table``.
    static func restore(_ rows: [[SQLValue]]) -> [SQLStatement] {
        let all = Grant.table.rows
        let grants = all.without("due_at")
        let scheduled = zip(["grant_id", "client_id", "due_at"], all.only(["id", "client_id", "due_at"]).columns)
        let schedule = Table("grant_schedule", scheduled.map { .init($0, $1.type, "", $1.value) })
        var counts: [String: Int64] = [:]
        let state = all.only(["state"]).columns[0]
        for case .text(let code?) in rows.map(state.value) { counts[code, default: 0] += 1 }
        return [
            SQLStatement(grants.insertMany("restore grants"), grants.arrays(of: rows)),
            SQLStatement(schedule.insertMany("restore schedules"), schedule.arrays(of: rows)),
        ] + [PendingWrites.count(counts)].compactMap(\.self)
    }

    /// Adds the statements that store `whole` and `refreshed`, the latter without the columns of `seldomChanged`.
    static func addUpdates(whole: [Grant], refreshed: [Grant], to batch: inout StatementBatch) {
        if !whole.isEmpty { batch.add(SQLStatement(updateWhole, changing.arrays(of: whole))) }
        if !refreshed.isEmpty { batch.add(SQLStatement(updateRefreshed, self.refreshed.arrays(of: refreshed))) }
        let all = whole + refreshed
        if !all.isEmpty { batch.add(SQLStatement(updateSchedule, schedule.arrays(of: all))) }
    }

    /// `true` if an update from `former` to `grant` leaves all columns of `seldomChanged` as they are.
    static func keepsSeldomChanged(_ grant: Grant, from former: Grant) -> Bool {
        grant.keepsSeldomChangedColumns(of: former) && grant.keepsWideColumns(of: former)
    }
}

/// The writes of a transaction that are not sent yet.
struct PendingWrites {
    private static let addCounts = SQLQuery(
        "count grants",
        sql: """
            INSERT INTO refresh_worker.grant_counts AS old (state, grants) SELECT * FROM unnest($1::text[], $2::bigint[])
            ON CONFLICT (state) DO UPDATE SET grants = old.grants + excluded.grants
            """
    )
    private static let notify = SQLQuery("notify", sql: "SELECT pg_notify($1, '')")

    private static let trimEvents = SQLQuery.trimEvents(
        ofGrant: "changed.id",
        from: " USING unnest($1::bigint[]) AS changed (id)"
    )

    /// The grants to store.
    private(set) var grants: [GrantID: Grant] = [:]
    /// The ids of those that differ in more than a refresh changes.
    private var whole: Set<GrantID> = []
    /// The Google accounts that these grants have left.
    private var leftAccounts: Set<String> = []
    private var counts: [String: Int64] = [:]
    var events: [GrantEvent] = []
    /// The events of grants that this transaction has added: too few to be trimmed.
    var firstEvents: [GrantEvent] = []
    /// The statements that add notices to the outbox.
    var notices: [SQLStatement] = []
    var healths: [String: [UInt8]] = [:]
    /// `true` if workers must be notified of new due times.
    private var hasConnections = false

    var isEmpty: Bool {
        grants.isEmpty && counts.isEmpty && events.isEmpty && firstEvents.isEmpty && notices.isEmpty && healths.isEmpty
            && !hasConnections
    }

    mutating func update(_ grant: Grant, from former: Grant, keepsSeldomChanged: Bool) {
        grants[grant.id] = grant
        if !keepsSeldomChanged { whole.insert(grant.id) }
        if let account = former.owner.googleUserID, account != grant.owner.googleUserID { leftAccounts.insert(account) }
        if former.state != grant.state {
            count(former.state, by: -1)
            count(grant.state, by: 1)
        }
    }

    /// `true` if one of these grants has left the Google account of `grant`.
    func hasLeft(accountOf grant: Grant) -> Bool {
        guard let account = grant.owner.googleUserID else { return false }
        return leftAccounts.contains(account)
    }

    mutating func count(_ state: GrantState, by difference: Int64) { counts[state.rawValue, default: 0] += difference }

    /// Returns the statement that changes the numbers of grants in each state by these, or `nil` if none changes.
    static func count(_ counts: [String: Int64]) -> SQLStatement? {
        let changed = counts.filter { $0.value != 0 }.sorted { $0.key < $1.key }
        guard !changed.isEmpty else { return nil }
        return SQLStatement(addCounts, .texts(changed.map(\.key)), .integers(changed.map(\.value)))
    }

    /// Adds the statements that send all writes.
    ///
    /// With a channel it also adds a notification to its listeners, which the commit sends.
    mutating func move(to batch: inout StatementBatch, notifying channel: String? = nil) {
        let sorted = grants.values.sorted { $0.id < $1.id }
        PostgresGrantRow.addUpdates(
            whole: sorted.filter { whole.contains($0.id) },
            refreshed: sorted.filter { !whole.contains($0.id) },
            to: &batch
        )
        let allEvents = firstEvents + events
        if !allEvents.isEmpty { batch.add(SQLStatement(.insertEvents, GrantEvent.added.arrays(of: allEvents))) }
        if !events.isEmpty {
            batch.add(Self.trimEvents, .ids(Set(events.map(\.grant)).sorted()))
        }
        for notice in notices { batch.add(notice) }
        for (client, health) in healths.sorted(by: { $0.key < $1.key }) {
            batch.add(.setHealth, .text(client), .bytes(health))
        }
        if let statement = Self.count(counts) { batch.add(statement) }
        let connects = hasConnections || allEvents.contains { $0.kind == .connected }
        self = PendingWrites()
        if let channel, connects {
            batch.add(Self.notify, .text(channel))
        } else {
            hasConnections = connects
        }
    }
}
