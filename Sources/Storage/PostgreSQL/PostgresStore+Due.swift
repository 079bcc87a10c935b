package import Base
private import Synchronization

extension PostgresStore {
    private static let entries = "SELECT due_at, grant_id FROM refresh_worker.grant_schedule WHERE client_id = $1"
    static let due = SQLQuery("due", sql: "\(entries) AND due_at <= $2 ORDER BY due_at, grant_id LIMIT $3")
    static let dueAfter = SQLQuery(
        "due after a cursor",
        sql: """
            \(entries) AND due_at <= $2 AND (due_at, grant_id) > ($4::bigint, $5::bigint)
            ORDER BY due_at, grant_id LIMIT $3
            """
    )
    static let duePart = SQLQuery(
        "part of a full look",
        sql: "\(entries) AND due_at <= $2 AND due_at > $4 ORDER BY due_at, grant_id LIMIT $3"
    )
    /// Reads the grants before the mark by their primary key.
    ///
    /// `OFFSET 0` keeps the planner from using the due index. After an ANALYZE it takes the table for nearly empty, since
    /// it counts no dead entries, and would step over all of them to find one grant.
    private static let stillDue = SQLQuery(
        "still due",
        sql: """
            SELECT due_at, grant_id FROM unnest($3::bigint[]) AS wanted (id) CROSS JOIN LATERAL (
                SELECT * FROM refresh_worker.grant_schedule WHERE grant_id = wanted.id OFFSET 0
            ) AS entry WHERE client_id = $1 AND due_at <= $2
            """
    )

    package func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        let target = min(limit, clock.now) - DueMark.margin
        if let mark = dueMark(of: clientID, target: target) {
            return try await due(
                ofClient: clientID,
                by: limit,
                after: cursor,
                atMost: count,
                beyond: mark,
                target: target
            )
        }
        let first = SQLStatement(Self.due, .text(clientID), .time(limit), .limit(count))
        let statement = cursor.map { due(after: $0, ofClient: clientID, by: limit, atMost: count) } ?? first
        let start = local.sinceBoot
        do throws(StoreError) {
            let page = try await rows([statement], by: .scan, endingAfter: scanLimit) { _, row in DueEntry.read(&row) }
            let end = local.sinceBoot
            if cursor == nil, end - start > slowScan {
                let mark = DueMark(after: page, ofAtMost: count, target: target, at: end)
                dueMarks.withLock { $0[clientID] = mark }
            }
            return page
        } catch {
            guard error.isTimeout else { throw error }
            let mark = DueMark(unreadUpTo: target, at: local.sinceBoot)
            dueMarks.withLock { $0[clientID] = mark }
            return try await due(ofClient: clientID, by: limit, after: cursor, atMost: count)
        }
    }

    package func waitForFullLook(ofClient clientID: String) async throws {
        await dueMarks.withLock { $0[clientID]?.look }?.value
        if let failure = dueMarks.withLock({ $0[clientID]?.failure }) { throw failure }
    }

    private func due(after cursor: DueEntry, ofClient clientID: String, by limit: Timestamp, atMost count: Int)
        -> SQLStatement
    {
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
    private func dueMark(of clientID: String, target: Timestamp) -> DueMark? {
        let instant = local.sinceBoot
        return dueMarks.withLock { marks in
            guard var mark = marks[clientID] else { return nil }
            guard target >= mark.position - DueMark.tolerance else {
                marks[clientID] = nil
                return nil
            }
            if mark.isLookDue(at: instant) {
                mark.look = Task { [position = mark.position] in await lookBeforeMark(position, of: clientID) }
                marks[clientID] = mark
            }
            return mark
        }
    }

    private func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int,
        beyond mark: DueMark,
        target: Timestamp
    ) async throws -> [DueEntry] {
        let start = DueEntry(dueAt: mark.position, id: GrantID(rawValue: .max))
        let isBeyondMark = cursor.map { $0.dueAt > mark.position } ?? false
        let found = try await rows(
            [
                SQLStatement(Self.stillDue, .text(clientID), .time(limit), .ids(mark.overdue.sorted())),
                due(after: isBeyondMark ? cursor ?? start : start, ofClient: clientID, by: limit, atMost: count),
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
    ///
    /// A failure ends no scan: the look is repeated, and the log says so.
    private func lookBeforeMark(_ position: Timestamp, of clientID: String) async {
        let start = local.sinceBoot
        let outcome: Result<[DueEntry], StoreError>
        do throws(StoreError) {
            outcome = .success(try await entriesBeforeMark(position, of: clientID))
        } catch {
            outcome = .failure(error)
        }
        let end = local.sinceBoot
        dueMarks.withLock { marks in
            guard var mark = marks[clientID] else { return }
            mark.look = nil
            mark.nextLook = end + DueMark.pause(after: end - start)
            switch outcome {
            case .success(let entries):
                mark.failure = nil
                mark.hasLeftGrantsOut = entries.count >= DueMark.capacity
                mark.overdue.formUnion(entries.map(\.id))
                // VACUUM has removed the dead entries: the index can be read from its beginning again.
                marks[clientID] = end - start < slowScan / 2 && !mark.hasLeftGrantsOut ? nil : mark
            case .failure(let failure):
                if mark.failure == nil { incidents.record(.lookFailed(failure)) }
                mark.failure = failure
                marks[clientID] = mark
            }
        }
    }

    /// Returns the longest overdue grants up to the mark.
    private func entriesBeforeMark(_ position: Timestamp, of clientID: String) async throws(StoreError)
        -> [DueEntry]
    {
        let statement = SQLStatement(Self.due, .text(clientID), .time(position), .limit(DueMark.capacity))
        do throws(StoreError) {
            return try await rows([statement], by: .survey, endingAfter: scanLimit) { _, row in DueEntry.read(&row) }
        } catch {
            guard error.isTimeout else { throw error }
            return try await partsBeforeMark(position, of: clientID)
        }
    }

    /// Reads the index backward in parts, each of which ends in time, since other queries wait for the connection.
    ///
    /// A part is twice as long as the one before if that was fast, and shorter if that was given up. The last one has
    /// no beginning.
    private func partsBeforeMark(_ position: Timestamp, of clientID: String) async throws(StoreError)
        -> [DueEntry]
    {
        var found: [DueEntry] = []
        var end = position
        var span = DueMark.firstPart
        while true {
            let isLast = span >= DueMark.lastPart
            let beginning = isLast ? Timestamp(milliseconds: .min) : end - span
            let statement = SQLStatement(
                Self.duePart,
                .text(clientID),
                .time(end),
                .limit(DueMark.capacity),
                .time(beginning)
            )
            let start = local.sinceBoot
            do throws(StoreError) {
                // All entries of one instant cannot be divided.
                let limit = span > DueMark.minimumPart ? scanLimit : scanLimit * 10
                let part = try await rows([statement], by: .survey, endingAfter: limit) { _, row in
                    DueEntry.read(&row)
                }
                found += part
                takeOver(part, of: clientID)
            } catch {
                guard error.isTimeout, span > DueMark.minimumPart else { throw error }
                span = max(span / 4, DueMark.minimumPart)
                continue
            }
            found.sort { ($0.dueAt, $0.id) < ($1.dueAt, $1.id) }
            found.removeLast(max(0, found.count - DueMark.capacity))
            guard !isLast else { return found }
            end = beginning
            if local.sinceBoot - start < scanLimit / 2 { span *= 2 }
        }
    }

    /// Adds what a part of a look has found: scans do not wait for the rest.
    private func takeOver(_ part: [DueEntry], of clientID: String) {
        dueMarks.withLock { marks in
            let free = DueMark.capacity - (marks[clientID]?.overdue.count ?? 0)
            guard free > 0 else { return }
            marks[clientID]?.overdue.formUnion(part.prefix(free).map(\.id))
        }
    }
}

extension StoreIncident {
    fileprivate static func lookFailed(_ failure: StoreError) -> StoreIncident {
        StoreIncident(kind: .lookFailed, text: failure.message)
    }
}
