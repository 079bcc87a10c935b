package import Base
private import Synchronization

/// The position in the due index up to which the scan of a client does not read any more.
///
/// Each refresh leaves a dead entry in the index. While any transaction of the server keeps an old snapshot, VACUUM
/// cannot remove them, and a scan from the beginning steps over all of them: 14 s at 1.6 million. So once a scan was
/// slow, the following ones begin at the mark, and grants that are due before it are read by their ids.
///
/// Example: the mark is at 12:00:00, and grant 7, due at 11:59, waits for its breaker. The scan reads the row of grant
/// 7, and the index from 12:00:00 on. Then a grant is imported that was due at 11:30. The next full look finds it.
struct DueMark {
    /// A scan that takes longer than this makes the following ones begin at a mark.
    static let slowScan: Duration = .milliseconds(50)
    /// The distance of the mark from the present: longer than a transaction that stores a due time of its beginning.
    static let margin: Duration = .seconds(30)
    /// The number of grants before the mark that are remembered.
    static let capacity = 20_000
    /// A correction of the database's clock, and not a step back.
    static let tolerance: Duration = .seconds(2)

    /// All grants that are due up to here are in `overdue`, except those that were stored since the last full look.
    var position: Timestamp
    var overdue: Set<GrantID>
    var isLooking = false
    var nextLook: BootInstant
    /// The failure of the last full look, until a scan reports it.
    var failure: StoreError?

    /// The mark after a scan that has read a page of at most `count` entries from the beginning of the index.
    init(after page: [DueEntry], ofAtMost count: Int, target: Timestamp, at instant: BootInstant) {
        let position = Self.position(after: page, ofAtMost: count, target: target)
        self.position = position
        overdue = Set(page.lazy.filter { $0.dueAt <= position }.map(\.id))
        nextLook = instant
    }

    /// Moves past the entries of a page after the mark.
    mutating func advance(past page: [DueEntry], ofAtMost count: Int, target: Timestamp) {
        let next = Self.position(after: page, ofAtMost: count, target: target)
        let passed = page.filter { $0.dueAt <= next }.map(\.id)
        guard next > position, overdue.count + passed.count <= Self.capacity else { return }
        overdue.formUnion(passed)
        position = next
    }

    /// A page that is full might lack entries of the same instant as its last one.
    private static func position(after page: [DueEntry], ofAtMost count: Int, target: Timestamp) -> Timestamp {
        guard page.count >= count, let last = page.last else { return target }
        return min(target, last.dueAt - .milliseconds(1))
    }

    /// The pause after a full look, so that it costs the server a fifth of one core at most.
    static func pause(after duration: Duration) -> Duration { min(duration * 4, .seconds(60)) }
}

extension PostgresStore {
    private static let entries = "SELECT due_at, grant_id FROM refresh_worker.grant_schedule WHERE client_id = $1"
    static let due = SQLQuery("due", "\(entries) AND due_at <= $2 ORDER BY due_at, grant_id LIMIT $3")
    static let dueAfter = SQLQuery(
        "due after a cursor",
        """
        \(entries) AND due_at <= $2 AND (due_at, grant_id) > ($4::bigint, $5::bigint)
        ORDER BY due_at, grant_id LIMIT $3
        """
    )
    /// Reads the grants before the mark by their primary key.
    private static let stillDue = SQLQuery("still due", "\(entries) AND due_at <= $2 AND grant_id = ANY($3)")

    package func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        let target = min(limit, clock.now) - DueMark.margin
        if let mark = try dueMark(of: clientID, target: target) {
            return try await due(ofClient: clientID, by: limit, after: cursor, atMost: count, mark, target: target)
        }
        if let cursor { return try await rows(after(cursor, clientID, limit, count), by: .scan, DueEntry.read) }
        let start = local.sinceBoot
        let page = try await rows(
            SQLStatement(Self.due, .text(clientID), .time(limit), .limit(count)),
            by: .scan,
            DueEntry.read
        )
        let end = local.sinceBoot
        if end - start > slowScan {
            let mark = DueMark(after: page, ofAtMost: count, target: target, at: end)
            dueMarks.withLock { $0[clientID] = mark }
        }
        return page
    }

    private func after(_ cursor: DueEntry, _ clientID: String, _ limit: Timestamp, _ count: Int) -> SQLStatement {
        SQLStatement(
            Self.dueAfter,
            .text(clientID),
            .time(limit),
            .limit(count),
            .time(cursor.dueAt),
            .integer(cursor.id.rawValue)
        )
    }

    /// Returns the mark of a client, if its scans are slow, and begins a full look if it is time.
    ///
    /// A clock that was set back ends the mark: what is stored from now on is due before it.
    private func dueMark(of clientID: String, target: Timestamp) throws -> DueMark? {
        let instant = local.sinceBoot
        let (mark, failure, isLookDue) = dueMarks.withLock { marks in
            guard var mark = marks[clientID] else { return (nil as DueMark?, nil as StoreError?, false) }
            guard target >= mark.position - DueMark.tolerance else {
                marks[clientID] = nil
                return (nil, nil, false)
            }
            let failure = mark.failure
            mark.failure = nil
            let isLookDue = !mark.isLooking && instant >= mark.nextLook
            if isLookDue { mark.isLooking = true }
            marks[clientID] = mark
            return (mark, failure, isLookDue)
        }
        if isLookDue, let mark { Task { await lookBeforeMark(mark.position, of: clientID) } }
        if let failure { throw failure }
        return mark
    }

    private func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int,
        _ mark: DueMark,
        target: Timestamp
    ) async throws -> [DueEntry] {
        let start = DueEntry(dueAt: mark.position, id: GrantID(rawValue: .max))
        let isBeyondMark = cursor.map { $0.dueAt > mark.position } ?? false
        let found = try await rows(
            [
                SQLStatement(Self.stillDue, .text(clientID), .time(limit), .ids(mark.overdue.sorted())),
                after(isBeyondMark ? cursor ?? start : start, clientID, limit, count),
            ],
            by: .scan
        ) { statement, row in (isOverdue: statement == 0, entry: DueEntry.read(&row)) }
        let overdue = found.filter(\.isOverdue).map(\.entry).sorted { ($0.dueAt, $0.id) < ($1.dueAt, $1.id) }
        let coming = found.filter { !$0.isOverdue }.map(\.entry)
        dueMarks.withLock { marks in
            guard marks[clientID]?.position == mark.position else { return }
            marks[clientID]?.overdue.subtract(mark.overdue.subtracting(overdue.map(\.id)))
            if !isBeyondMark { marks[clientID]?.advance(past: coming, ofAtMost: count, target: target) }
        }
        let rest = overdue.filter { entry in
            guard let cursor else { return true }
            return (entry.dueAt, entry.id) > (cursor.dueAt, cursor.id)
        }
        return Array((rest + coming).prefix(count))
    }

    /// Reads the index up to the mark on a connection of its own, so that nothing waits for it.
    private func lookBeforeMark(_ position: Timestamp, of clientID: String) async {
        let start = local.sinceBoot
        let outcome: Result<[DueEntry], StoreError>
        do throws(StoreError) {
            outcome = .success(
                try await rows(
                    [SQLStatement(Self.due, .text(clientID), .time(position), .limit(DueMark.capacity))],
                    by: .survey
                ) { _, row in DueEntry.read(&row) }
            )
        } catch {
            outcome = .failure(error)
        }
        let end = local.sinceBoot
        dueMarks.withLock { marks in
            guard var mark = marks[clientID] else { return }
            mark.isLooking = false
            mark.nextLook = end + DueMark.pause(after: end - start)
            switch outcome {
            case .success(let entries):
                mark.overdue.formUnion(entries.map(\.id))
                // VACUUM has removed the dead entries: the index can be read from its beginning again.
                marks[clientID] = end - start < slowScan / 2 ? nil : mark
            case .failure(let error):
                mark.failure = error
                marks[clientID] = mark
            }
        }
    }
}
