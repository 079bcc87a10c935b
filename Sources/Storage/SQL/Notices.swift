import Base

extension ArchivedNotice {
    static let table = Table<ArchivedNotice>(
        "notices",
        [
            .init("seq", .sequence(neverReused: true)) { .integer($0.notice.sequence) },
            .init("nonce", .integer, "NOT NULL CHECK (nonce BETWEEN 0 AND 4294967295)") {
                .integer(Int64($0.notice.nonce))
            },
            .init("user_id", .text, "NOT NULL") { .text($0.notice.userID) },
            .init("at", .integer, "NOT NULL") { .time($0.notice.at) },
            // The kind says whether it is about a grant or a session too.
            .init("kind", .text, "NOT NULL") { .text(Notice.Columns($0.notice.content).kind) },
            .init("grant_id", .integer) { .integer(Notice.Columns($0.notice.content).grant) },
            .init("from_state", .text) { .text(Notice.Columns($0.notice.content).from) },
            .init("to_state", .text) { .text(Notice.Columns($0.notice.content).to) },
            .init("reason", .text) { .text(Notice.Columns($0.notice.content).reason) },
            .init("lost_scopes", .text) { .text(Notice.Columns($0.notice.content).lost) },
            .init("granted_scopes", .text) { .text(Notice.Columns($0.notice.content).granted) },
            .init("session_id", .text) { .text(Notice.Columns($0.notice.content).session) },
            .init("pending_since", .integer, "NOT NULL") { .time($0.notice.pendingSince) },
            .init("attempts", .integer, "NOT NULL CHECK (attempts >= 0)") { .integer(Int64($0.notice.attempts)) },
            .init("next_try_at", .integer) { .time($0.nextTryAt) },
            .init("accepted_at", .integer) { .time($0.acceptedAt) },
            .init("given_up_at", .integer) { .time($0.givenUpAt) },
        ]
    )

    static func read(_ row: inout some SQLRow) throws(StoreError) -> ArchivedNotice {
        ArchivedNotice(
            notice: try Notice.read(&row),
            nextTryAt: row.timestamp(),
            acceptedAt: row.timestamp(),
            givenUpAt: row.timestamp()
        )
    }
}

extension Notice {
    static func read(_ row: inout some SQLRow) throws(StoreError) -> Notice {
        let sequence = row.integer()
        let nonce = UInt32(truncatingIfNeeded: row.integer())
        let userID = row.text()
        let at = row.time()
        let columns = Columns(
            kind: row.text(),
            grant: row.optionalInteger(),
            from: row.optionalText(),
            to: row.optionalText(),
            reason: row.optionalText(),
            lost: row.optionalText(),
            granted: row.optionalText(),
            session: row.optionalText()
        )
        guard let content = columns.content else { throw StoreError(damagedRow: "Notice \(sequence)") }
        return Notice(
            sequence: sequence,
            nonce: nonce,
            userID: userID,
            at: at,
            content: content,
            pendingSince: row.time(),
            attempts: row.count()
        )
    }
}

extension SQLQuery {
    private static let isPending = "accepted_at IS NULL AND given_up_at IS NULL"
    private static let isFinished = "(accepted_at IS NOT NULL OR given_up_at IS NOT NULL)"
    private static let added = ArchivedNotice.table.without("seq", "next_try_at", "accepted_at", "given_up_at")

    /// The oldest pending notice of a user is due at once; later ones wait for it.
    static let insertNotice = SQLQuery(
        "insert notice",
        """
        INSERT INTO refresh_worker.notices (\(added.names), next_try_at)
        SELECT \(added.columns.indices.map { "$\($0 + 1)" }.joined(separator: ", ")), CASE
            WHEN EXISTS (SELECT 1 FROM refresh_worker.notices WHERE user_id = $2 AND \(isPending)) THEN NULL
            ELSE $3
        END
        """
    )
    static let dueNotices = SQLQuery(
        "due notices",
        """
        SELECT \(ArchivedNotice.table.without("next_try_at", "accepted_at", "given_up_at").names)
        FROM refresh_worker.notices WHERE next_try_at <= $1 ORDER BY next_try_at, seq LIMIT $2
        """
    )
    static let nextNotice = SQLQuery(
        "next notice",
        "SELECT min(next_try_at) FROM refresh_worker.notices WHERE next_try_at IS NOT NULL"
    )
    static let pendingNotices = SQLQuery(
        "pending notices",
        """
        SELECT count(*), min(pending_since) FROM (
            SELECT pending_since FROM refresh_worker.notices WHERE next_try_at IS NOT NULL
            ORDER BY next_try_at, seq LIMIT \(PendingNotices.limit)
        ) AS part
        """
    )
    static let acceptNotice = finishNotice("accept notice", setting: "accepted_at")
    static let giveUpNotice = finishNotice("give up notice", setting: "given_up_at")

    private static func finishNotice(_ name: String, setting column: String) -> SQLQuery {
        SQLQuery(
            name,
            "UPDATE refresh_worker.notices SET \(column) = $2, next_try_at = NULL WHERE seq = $1 AND \(isPending)"
        )
    }

    /// Makes the next pending notice of a finished one's user due.
    static let followNotice = SQLQuery(
        "follow notice",
        """
        UPDATE refresh_worker.notices SET next_try_at = coalesce(next_try_at, $2) WHERE seq = (
            SELECT min(seq) FROM refresh_worker.notices
            WHERE user_id = (SELECT user_id FROM refresh_worker.notices WHERE seq = $1) AND \(isPending)
        )
        """
    )
    static let postponeNotice = SQLQuery(
        "postpone notice",
        """
        UPDATE refresh_worker.notices SET next_try_at = $2, attempts = attempts + 1
        WHERE seq = $1 AND next_try_at IS NOT NULL
        """
    )
    static let expediteNotices = SQLQuery(
        "expedite notices",
        "UPDATE refresh_worker.notices SET next_try_at = $1 WHERE next_try_at > $1"
    )
    /// The finished notices after the one at `$1` with the number `$2`.
    static let finishedNotices = SQLQuery(
        "finished notices",
        """
        SELECT at, seq, user_id FROM refresh_worker.notices
        WHERE (at, seq) > ($1, $2) AND at >= $1 AND ($3 IS NULL OR user_id = $3) AND \(isFinished)
        ORDER BY at, seq LIMIT $4
        """
    )
    /// `+at` keeps SQLite to the index of users.
    static let replayNotices = SQLQuery(
        "replay notices",
        """
        UPDATE refresh_worker.notices SET accepted_at = NULL, given_up_at = NULL, attempts = 0, pending_since = $3
        WHERE user_id = $2 AND +at >= $1 AND \(isFinished)
        """
    )
    static let scheduleFirstNotices = SQLQuery(
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
        WHERE user_id = $2 AND \(isPending)
        """
    )
    static let removeOldNotices = SQLQuery(
        "remove old notices",
        """
        DELETE FROM refresh_worker.notices WHERE seq IN (
            SELECT seq FROM refresh_worker.notices
            WHERE \(isFinished) AND coalesce(accepted_at, given_up_at) < $1 LIMIT $2
        )
        """
    )
}

extension SQLStatement {
    /// Adds a notice to the outbox.
    static func insertNotice(_ content: Notice.Content, ofUser userID: String, at now: Timestamp, nonce: UInt64)
        -> SQLStatement
    {
        let columns = Notice.Columns(content)
        return SQLStatement(
            .insertNotice,
            .integer(Int64(UInt32(truncatingIfNeeded: nonce))),
            .text(userID),
            .time(now),
            .text(columns.kind),
            .integer(columns.grant),
            .text(columns.from),
            .text(columns.to),
            .text(columns.reason),
            .text(columns.lost),
            .text(columns.granted),
            .text(columns.session),
            .time(now),
            .integer(0)
        )
    }
}

extension SQLStore {
    package func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice] {
        try await rows(SQLStatement(.dueNotices, .time(now), .limit(count)), by: .single, Notice.read)
    }

    package func nextNoticeAt() async throws -> Timestamp? {
        try await first(SQLStatement(.nextNotice)) { $0.timestamp() } ?? nil
    }

    package func pendingNotices() async throws -> PendingNotices {
        try await first(SQLStatement(.pendingNotices)) { PendingNotices(count: $0.count(), oldest: $0.timestamp()) }
            ?? PendingNotices(count: 0, oldest: nil)
    }

    package func noticeAccepted(_ sequence: Int64, at now: Timestamp) async throws {
        try await finish(sequence, by: .acceptNotice, at: now)
    }

    package func noticeGivenUp(_ sequence: Int64, at now: Timestamp) async throws {
        try await finish(sequence, by: .giveUpNotice, at: now)
    }

    /// Exclusive, because transactions check for a pending notice before they add one.
    private func finish(_ sequence: Int64, by query: SQLQuery, at now: Timestamp) async throws {
        try await change(
            [query, .followNotice].map { SQLStatement($0, .integer(sequence), .time(now)) },
            .exclusive
        )
    }

    package func noticePostponed(_ sequence: Int64, until next: Timestamp) async throws {
        try await change([SQLStatement(.postponeNotice, .integer(sequence), .time(next))], .exclusive)
    }

    package func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp) async throws -> Int {
        try await changePages(after: NoticeCursor(at: start, sequence: -1)) { cursor in
            let page = try await rows(
                SQLStatement(
                    .finishedNotices,
                    .time(cursor.at),
                    .integer(cursor.sequence),
                    .text(userID),
                    .limit(NoticeReplay.batchSize)
                ),
                by: .scan
            ) { row in
                let cursor = NoticeCursor(at: row.time(), sequence: row.integer())
                return (cursor: cursor, user: row.text())
            }
            guard let last = page.last else { return ChangedPage(changed: 0, next: nil) }
            let users = NoticeReplay.distinct(page.map(\.user))
            let changed = try await change(
                users.map { SQLStatement(.replayNotices, .time(start), .text($0), .time(now)) }
                    + users.map { SQLStatement(.scheduleFirstNotices, .time(now), .text($0)) },
                .exclusive
            )
            return ChangedPage(
                changed: changed.prefix(users.count).reduce(0, +),
                next: page.count == NoticeReplay.batchSize ? last.cursor : nil
            )
        }
    }
}
