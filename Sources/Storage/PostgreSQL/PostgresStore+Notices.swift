package import Base

extension PostgresQuery {
    private static let isPending = "accepted_at IS NULL AND given_up_at IS NULL"

    /// The oldest pending notice of a user is due at once; later ones wait for it.
    fileprivate static let insertNotice = PostgresQuery(
        "insert notice",
        """
        INSERT INTO refresh_worker.notices (
            nonce, user_id, at, \(Notice.Columns.names), pending_since, attempts, next_try_at
        )
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $3, 0, CASE
            WHEN EXISTS (SELECT 1 FROM refresh_worker.notices WHERE user_id = $2 AND \(isPending)) THEN NULL
            ELSE $3
        END
        """
    )
    fileprivate static let dueNotices = PostgresQuery(
        "due notices",
        """
        SELECT \(PostgresNoticeRow.columns) FROM refresh_worker.notices
        WHERE next_try_at <= $1 ORDER BY next_try_at, seq LIMIT $2
        """
    )
    fileprivate static let nextNotice = PostgresQuery(
        "next notice",
        "SELECT min(next_try_at) FROM refresh_worker.notices WHERE next_try_at IS NOT NULL"
    )
    fileprivate static let pendingNotices = PostgresQuery(
        "pending notices",
        """
        SELECT count(*), min(pending_since) FROM (
            SELECT pending_since FROM refresh_worker.notices WHERE next_try_at IS NOT NULL
            ORDER BY next_try_at, seq LIMIT \(PendingNotices.limit)
        ) AS part
        """
    )
    /// Returns the statement that finishes a notice (accepts it or gives it up) and makes the next pending one of its
    /// user due.
    private static func finish(_ name: String, setting column: String) -> PostgresQuery {
        PostgresQuery(
            name,
            """
            WITH finished AS (
                UPDATE refresh_worker.notices SET \(column) = $2, next_try_at = NULL
                WHERE seq = $1 AND \(isPending) RETURNING user_id
            )
            UPDATE refresh_worker.notices SET next_try_at = coalesce(next_try_at, $2) WHERE seq = (
                SELECT min(seq) FROM refresh_worker.notices
                WHERE user_id = (SELECT user_id FROM finished) AND \(isPending) AND seq <> $1
            )
            """
        )
    }
    fileprivate static let acceptNotice = finish("accept notice", setting: "accepted_at")
    fileprivate static let giveUpNotice = finish("give up notice", setting: "given_up_at")
    fileprivate static let postponeNotice = PostgresQuery(
        "postpone notice",
        """
        UPDATE refresh_worker.notices SET next_try_at = $2, attempts = attempts + 1
        WHERE seq = $1 AND next_try_at IS NOT NULL
        """
    )
    private static let isFinished = "(accepted_at IS NOT NULL OR given_up_at IS NOT NULL)"

    /// The finished notices after the one at `$1` with the number `$2`.
    fileprivate static let finishedNotices = PostgresQuery(
        "finished notices",
        """
        SELECT at, seq, user_id FROM refresh_worker.notices
        WHERE (at, seq) > ($1, $2) AND at >= $1 AND ($3::text IS NULL OR user_id = $3) AND \(isFinished)
        ORDER BY at, seq LIMIT $4
        """
    )
    fileprivate static let replayNotices = PostgresQuery(
        "replay notices",
        """
        UPDATE refresh_worker.notices SET accepted_at = NULL, given_up_at = NULL, attempts = 0, pending_since = $3
        WHERE user_id = ANY($2) AND at >= $1 AND \(isFinished)
        """
    )
    fileprivate static let scheduleFirstNotices = PostgresQuery(
        "schedule first notices",
        """
        UPDATE refresh_worker.notices SET next_try_at = CASE
            WHEN EXISTS (
                SELECT 1 FROM refresh_worker.notices AS older
                WHERE older.user_id = notices.user_id AND older.seq < notices.seq
                    AND older.accepted_at IS NULL AND older.given_up_at IS NULL
            ) THEN NULL
            ELSE coalesce(next_try_at, $1)
        END
        WHERE user_id = ANY($2) AND \(isPending)
        """
    )
    /// Claims the right to deliver, stored as "until owner", if it has ended, belongs to the same owner, or ends later
    /// than any can since the clock was set back.
    fileprivate static let claimNotices = PostgresQuery(
        "claim notices",
        """
        INSERT INTO refresh_worker.meta AS old (key, value)
        VALUES ('notice_lease', (\(now(unless: 3)) + $2) || ' ' || $1)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
        WHERE split_part(old.value, ' ', 1)::bigint NOT BETWEEN \(now(unless: 3)) + 1 AND \(now(unless: 3)) + 2 * $2
            OR substr(old.value, strpos(old.value, ' ') + 1) = $1
        """
    )
    fileprivate static let releaseNotices = PostgresQuery(
        "release notices",
        """
        DELETE FROM refresh_worker.meta
        WHERE key = 'notice_lease' AND substr(value, strpos(value, ' ') + 1) = $1
        """
    )
}

extension StatementBatch {
    mutating func addNotice(_ notice: PendingNotice) {
        add(.insertNotice) {
            $0.bind(Int64(UInt32(truncatingIfNeeded: notice.nonce)))
            $0.bind(notice.userID)
            $0.bind(notice.at)
            let columns = Notice.Columns(notice.content)
            $0.bind(columns.kind)
            $0.bind(columns.grant)
            $0.bind(columns.from)
            $0.bind(columns.to)
            $0.bind(columns.reason)
            $0.bind(columns.lost)
            $0.bind(columns.granted)
            $0.bind(columns.session)
        }
    }
}

extension PostgresStore {
    package func claimNotices(owner: String, for span: Duration) async throws -> Bool {
        try await change(.claimNotices) { [leaseClock] in
            $0.bind(owner)
            $0.bind(span.wholeMilliseconds)
            $0.bind(leaseClock?.sinceBoot.milliseconds)
        } == 1
    }

    package func releaseNotices(owner: String) async throws {
        _ = try await change(.releaseNotices) { $0.bind(owner) }
    }

    package func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice] {
        try await reader.rows(
            .dueNotices,
            bind: { parameters in
                parameters.bind(now)
                parameters.bind(Int64(max(0, count)))
            },
            read: PostgresNoticeRow.read
        )
    }

    package func nextNoticeAt() async throws -> Timestamp? {
        try await reader.first(.nextNotice) { (row: inout PostgresRow) throws(StatementFailure) in row.timestamp() }
            ?? nil
    }

    package func pendingNotices() async throws -> PendingNotices {
        try await reader.first(.pendingNotices) { (row: inout PostgresRow) throws(StatementFailure) in
            PendingNotices(count: Int(row.integer()), oldest: row.timestamp())
        } ?? PendingNotices(count: 0, oldest: nil)
    }

    package func noticeAccepted(_ sequence: Int64, at now: Timestamp) async throws {
        try await finish(sequence, by: .acceptNotice, at: now)
    }

    package func noticeGivenUp(_ sequence: Int64, at now: Timestamp) async throws {
        try await finish(sequence, by: .giveUpNotice, at: now)
    }

    package func noticePostponed(_ sequence: Int64, until next: Timestamp) async throws {
        try await finish(sequence, by: .postponeNotice, at: next)
    }

    package func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp) async throws -> Int {
        try await changePages(after: NoticeCursor(at: start, sequence: -1)) { cursor in
            let page = try await finishedNotices(after: cursor, ofUser: userID)
            guard let last = page.last else { return ChangedPage(changed: 0, next: nil) }
            let count = try await replay(NoticeReplay.distinct(page.map(\.user)), since: start, at: now)
            return ChangedPage(changed: count, next: page.count == NoticeReplay.batchSize ? last.cursor : nil)
        }
    }

    private func finishedNotices(
        after cursor: NoticeCursor,
        ofUser userID: String?
    ) async throws -> [(cursor: NoticeCursor, user: String)] {
        try await scanner.rows(
            .finishedNotices,
            bind: { parameters in
                parameters.bind(cursor.at)
                parameters.bind(cursor.sequence)
                parameters.bind(userID)
                parameters.bind(Int64(NoticeReplay.batchSize))
            },
            read: { (row: inout PostgresRow) throws(StatementFailure) in
                let at = Timestamp(milliseconds: row.integer())
                return (NoticeCursor(at: at, sequence: row.integer()), row.text())
            }
        )
    }

    private func replay(_ users: [String], since start: Timestamp, at now: Timestamp) async throws -> Int {
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            batch.addWriterLock()
            let position = batch.add(.replayNotices) {
                $0.bind(start)
                $0.bind(texts: users, \.self)
                $0.bind(now)
            }
            batch.add(.scheduleFirstNotices) {
                $0.bind(now)
                $0.bind(texts: users, \.self)
            }
            return try commit(batch, on: connection, until: deadline)[position].changedRows
        }
    }

    private func finish(_ sequence: Int64, by query: PostgresQuery, at time: Timestamp) async throws {
        // With the lock of the transactions, which check for a pending notice before they add one.
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            batch.addWriterLock()
            batch.add(query) {
                $0.bind(sequence)
                $0.bind(time)
            }
            _ = try commit(batch, on: connection, until: deadline)
        }
    }

    /// Runs one statement that may be repeated; returns the number of rows it changed.
    private func change(_ query: PostgresQuery, bind: @escaping @Sendable (inout Parameters) -> Void) async throws
        -> Int
    {
        try await leasing.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            let position = batch.add(query, bind: bind)
            return try commit(batch, isRepeatable: true, on: connection, until: deadline)[position].changedRows
        }
    }
}
