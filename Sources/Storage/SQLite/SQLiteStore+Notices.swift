package import Base

extension SQLiteQuery {
    /// The oldest pending notice of a user is due at once; later ones wait for it.
    static let insertNotice = SQLiteQuery(
        "insert notice",
        """
        INSERT INTO notices (nonce, user_id, at, \(Notice.Columns.names), pending_since, attempts, next_try_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?3, 0, iif(
            EXISTS (
                SELECT 1 FROM notices WHERE user_id = ?2 AND accepted_at IS NULL AND given_up_at IS NULL
            ), NULL, ?3
        ))
        """
    )
    static let dueNotices = SQLiteQuery(
        "due notices",
        "SELECT \(SQLiteNoticeRow.columns) FROM notices WHERE next_try_at <= ?1 ORDER BY next_try_at, seq LIMIT ?2"
    )
    static let nextNotice = SQLiteQuery(
        "next notice",
        "SELECT min(next_try_at) FROM notices WHERE next_try_at IS NOT NULL"
    )
    static let pendingNotices = SQLiteQuery(
        "pending notices",
        """
        SELECT count(*), min(pending_since) FROM (
            SELECT pending_since FROM notices INDEXED BY notices_due WHERE next_try_at IS NOT NULL
            ORDER BY next_try_at, seq LIMIT \(PendingNotices.limit)
        )
        """
    )
    static let acceptNotice = SQLiteQuery(
        "accept notice",
        """
        UPDATE notices SET accepted_at = ?2, next_try_at = NULL
        WHERE seq = ?1 AND accepted_at IS NULL AND given_up_at IS NULL RETURNING user_id
        """
    )
    static let giveUpNotice = SQLiteQuery(
        "give up notice",
        """
        UPDATE notices SET given_up_at = ?2, next_try_at = NULL
        WHERE seq = ?1 AND accepted_at IS NULL AND given_up_at IS NULL RETURNING user_id
        """
    )
    static let postponeNotice = SQLiteQuery(
        "postpone notice",
        "UPDATE notices SET next_try_at = ?2, attempts = attempts + 1 WHERE seq = ?1 AND next_try_at IS NOT NULL"
    )
    static let followNotice = SQLiteQuery(
        "follow notice",
        """
        UPDATE notices SET next_try_at = coalesce(next_try_at, ?2) WHERE seq = (
            SELECT min(seq) FROM notices WHERE user_id = ?1 AND accepted_at IS NULL AND given_up_at IS NULL
        )
        """
    )
    /// The finished notices after the one at `?1` with the number `?2`.
    static let finishedNotices = SQLiteQuery(
        "finished notices",
        """
        SELECT at, seq, user_id FROM notices
        WHERE (at, seq) > (?1, ?2) AND (?3 IS NULL OR user_id = ?3) AND (accepted_at IS NOT NULL OR given_up_at IS NOT NULL)
        ORDER BY at, seq LIMIT ?4
        """
    )
    static let replayNotices = SQLiteQuery(
        "replay notices",
        """
        UPDATE notices SET accepted_at = NULL, given_up_at = NULL, attempts = 0, pending_since = ?3
        WHERE user_id = ?2 AND +at >= ?1
            AND (accepted_at IS NOT NULL OR given_up_at IS NOT NULL)
        """
    )
    static let scheduleFirstNotices = SQLiteQuery(
        "schedule first notices",
        """
        UPDATE notices SET next_try_at = iif(
            EXISTS (
                SELECT 1 FROM notices AS older
                WHERE older.user_id = notices.user_id AND older.seq < notices.seq
                    AND older.accepted_at IS NULL AND older.given_up_at IS NULL
            ), NULL, coalesce(next_try_at, ?1)
        )
        WHERE user_id = ?2 AND accepted_at IS NULL AND given_up_at IS NULL
        """
    )
    static let deleteMeta = SQLiteQuery("delete meta", "DELETE FROM meta WHERE key = ?")
}

extension SQLiteTransaction {
    func insertNotice(_ content: Notice.Content, ofUser userID: String, at now: Timestamp, nonce: UInt64) throws {
        try perform { () throws(StoreError) in
            try connection.run(.insertNotice) {
                $0.bind(Int64(UInt32(truncatingIfNeeded: nonce)))
                $0.bind(userID)
                $0.bind(now)
                SQLiteNoticeRow.bind(Notice.Columns(content), to: $0)
            }
        }
    }
}

extension SQLiteStore {
    /// The key in `meta` of the process that delivers: "until length epoch+owner", with the length of the epoch, since
    /// both may contain spaces.
    private static let leaseKey = "notice_lease"

    package func claimNotices(owner: String, for span: Duration) async throws -> Bool {
        try await writer.run { [self] connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                let time = leaseTimeNow
                let lease = try connection.noticeLease(key: Self.leaseKey)
                if let lease, lease.owner != owner, lease.isLive(at: time) { return false }
                try connection.run(.writeMeta) {
                    $0.bind(Self.leaseKey)
                    $0.bind("\((time.instant + span).milliseconds) \(time.epoch.utf8.count) \(time.epoch)\(owner)")
                }
                return true
            }
        }
    }

    package func releaseNotices(owner: String) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write(evenIfMoved: true) { () throws(StoreError) in
                guard try connection.noticeLease(key: Self.leaseKey)?.owner == owner else { return }
                try connection.run(.deleteMeta) { $0.bind(Self.leaseKey) }
            }
        }
    }

    package func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice] {
        try await reader.run { connection throws(StoreError) in
            try connection.rows(
                .dueNotices,
                bind: { statement in
                    statement.bind(now)
                    statement.bind(Int64(max(0, count)))
                },
                read: SQLiteNoticeRow.read
            )
        }
    }

    package func nextNoticeAt() async throws -> Timestamp? {
        try await reader.run { connection throws(StoreError) in
            try connection.rows(.nextNotice) { (row: inout SQLiteRow) throws(StoreError) in row.timestamp() }
                .compactMap(\.self).first
        }
    }

    package func pendingNotices() async throws -> PendingNotices {
        try await reader.run { connection throws(StoreError) in
            try connection.first(.pendingNotices) { (row: inout SQLiteRow) throws(StoreError) in
                PendingNotices(count: Int(row.integer()), oldest: row.timestamp())
            } ?? PendingNotices(count: 0, oldest: nil)
        }
    }

    package func noticeAccepted(_ sequence: Int64, at now: Timestamp) async throws {
        try await finish(sequence, by: .acceptNotice, at: now)
    }

    package func noticeGivenUp(_ sequence: Int64, at now: Timestamp) async throws {
        try await finish(sequence, by: .giveUpNotice, at: now)
    }

    package func noticePostponed(_ sequence: Int64, until next: Timestamp) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                try connection.run(.postponeNotice) {
                    $0.bind(sequence)
                    $0.bind(next)
                }
            }
        }
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
        try await reader.run { connection throws(StoreError) in
            try connection.rows(
                .finishedNotices,
                bind: { statement in
                    statement.bind(cursor.at)
                    statement.bind(cursor.sequence)
                    statement.bind(userID)
                    statement.bind(Int64(NoticeReplay.batchSize))
                },
                read: { (row: inout SQLiteRow) throws(StoreError) in
                    let at = Timestamp(milliseconds: row.integer())
                    return (NoticeCursor(at: at, sequence: row.integer()), row.text())
                }
            )
        }
    }

    private func replay(_ users: [String], since start: Timestamp, at now: Timestamp) async throws -> Int {
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                var count = 0
                for user in users {
                    try connection.run(.replayNotices) {
                        $0.bind(start)
                        $0.bind(user)
                        $0.bind(now)
                    }
                    count += connection.changedRows
                    try connection.run(.scheduleFirstNotices) {
                        $0.bind(now)
                        $0.bind(user)
                    }
                }
                return count
            }
        }
    }

    /// Finishes a notice and makes the next one of its user due.
    private func finish(_ sequence: Int64, by query: SQLiteQuery, at now: Timestamp) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                let bind = { (statement: Statement) in
                    statement.bind(sequence)
                    statement.bind(now)
                }
                let user = try connection.first(query, bind: bind) { (row: inout SQLiteRow) throws(StoreError) in
                    row.text()
                }
                guard let user else { return }
                try connection.run(.followNotice) {
                    $0.bind(user)
                    $0.bind(now)
                }
            }
        }
    }
}

extension SQLiteConnection {
    fileprivate func noticeLease(key: String) throws(StoreError) -> Lease? {
        let stored = try first(.readMeta, bind: { $0.bind(key) }) { (row: inout SQLiteRow) throws(StoreError) in
            row.text()
        }
        let parts = (stored ?? "").split(separator: " ", maxSplits: 2)
        guard parts.count == 3, let until = Int64(parts[0]), let length = Int(parts[1]) else { return nil }
        let text = Array(parts[2].utf8)
        return Lease(
            owner: String(decoding: text.dropFirst(length), as: UTF8.self),
            claim: 0,
            epoch: String(decoding: text.prefix(length), as: UTF8.self),
            until: BootInstant(milliseconds: until)
        )
    }
}
