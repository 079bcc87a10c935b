import Base

extension Notice {
    /// The columns of a content follow the kind: which of them have a value depends on it.
    static let table = Table<Notice>(
        "notices",
        key: ["user_id", "number"],
        [
            .init("user_id", .text, "NOT NULL"),
            // Counts the notices of the user, in their order. All writers of notices exclude each other.
            .init("number", .integer, "NOT NULL"),
            .init("id", .bytes, "NOT NULL CHECK (length(id) = \(NoticeID.byteCount))"),
            .init("at", .integer, "NOT NULL"),
            .init("traceparent", .text),
            .init("kind", .text, "NOT NULL"),
            .init("grant_id", .integer),
            .init("connection", .text),
            .init("labels", .text),
            .init("from_state", .text),
            .init("to_state", .text),
            .init("reason", .text),
            .init("lost_scopes", .text),
            .init("granted_scopes", .text),
            .init("session_id", .text),
            .init("expires_at", .integer),
            .init("pending_since", .integer, "NOT NULL"),
            .init("attempts", .integer, "NOT NULL CHECK (attempts >= 0)"),
            // `nil` if it waits for another notice of its user, or is finished.
            .init("next_try_at", .integer),
            .init("accepted_at", .integer),
            .init("given_up_at", .integer),
        ]
    )
    fileprivate static let read = table.without("next_try_at", "accepted_at", "given_up_at")
    /// The columns of a new notice. The statement that adds it gives it its number.
    fileprivate static let added = read.without("number")

    static func read(_ row: inout some SQLRow) throws(StoreError) -> Notice {
        let key = Key(userID: row.text(), number: row.integer())
        guard let id = NoticeID(bytes: row.blob()) else { throw StoreError(damagedRow: "The id of a notice") }
        let at = row.time()
        // One that cannot be read is ignored, as in a request: the notice matters more.
        let trace = row.optionalText().flatMap { TraceContext(traceparent: $0) }
        guard let content = Content(&row) else { throw StoreError(damagedRow: "Notice \(id)") }
        return Notice(
            key: key,
            id: id,
            at: at,
            trace: trace,
            content: content,
            pendingSince: row.time(),
            attempts: row.count()
        )
    }
}

extension Notice.Subject {
    /// Reads the columns of a subject, and returns `nil` if the notice is about no grant.
    fileprivate init?(_ row: inout some SQLRow) {
        let grant = row.optionalInteger()
        let connection = row.optionalText()
        let labels = ConnectionLabels(stored: row.optionalText())
        guard let grant, let connection else { return nil }
        self.init(grant: GrantID(rawValue: grant), connection: ConnectionID(stored: connection), labels: labels)
    }
}

extension Notice.Content {
    /// Reads the columns of a content, and returns `nil` if they are damaged.
    fileprivate init?(_ row: inout some SQLRow) {
        let kind = row.text()
        let subject = Notice.Subject(&row)
        let from = row.optionalText().flatMap(GrantState.init(rawValue:))
        let to = row.optionalText().flatMap(GrantState.init(rawValue:))
        let (reason, lost, granted) = (row.optionalText(), row.optionalText(), row.optionalText())
        let session = row.optionalText().flatMap { SessionID(text: $0) }
        let end = row.timestamp()
        switch (kind, subject, session) {
        case ("connection", let subject?, _):
            guard let from, let to, let reason else { return nil }
            self = .connection(of: subject, from: from, to: to, reason: GrantReason(rawValue: reason))
        case ("lost_scopes", let subject?, _):
            guard let lost, let granted else { return nil }
            self = .lostScopes(of: subject, lost: lost, granted: granted)
        case ("expiring", let subject?, _):
            guard let end else { return nil }
            self = .expiring(of: subject, at: end)
        case ("session_reused", _, let session?): self = .sessionReused(session)
        case ("user_deleted", _, _): self = .userDeleted
        default: return nil
        }
    }

    /// The values of the columns of a content.
    fileprivate var values: [SQLValue] {
        var end: Timestamp?
        let (kind, texts): (String, [String?])
        switch self {
        case .connection(_, let from, let to, let reason):
            (kind, texts) = ("connection", [from.rawValue, to.rawValue, reason.rawValue, nil, nil, nil])
        case .lostScopes(_, let lost, let granted):
            (kind, texts) = ("lost_scopes", [nil, nil, nil, lost, granted, nil])
        case .expiring(_, let at): (kind, texts, end) = ("expiring", [nil, nil, nil, nil, nil, nil], at)
        case .sessionReused(let session):
            (kind, texts) = ("session_reused", [nil, nil, nil, nil, nil, session.description])
        case .userDeleted: (kind, texts) = ("user_deleted", [nil, nil, nil, nil, nil, nil])
        }
        let columns: [SQLValue] = [
            .text(kind),
            .integer(subject?.grant.rawValue),
            .text(subject?.connection.description),
            .text(subject?.labels.stored),
        ]
        return columns + texts.map { .text($0) } + [.time(end)]
    }
}

extension SQLQuery {
    private static let isPending = "accepted_at IS NULL AND given_up_at IS NULL"
    private static let isFinished = "(accepted_at IS NOT NULL OR given_up_at IS NOT NULL)"

    /// The oldest pending notice of a user is due at once, and later ones wait for it.
    static let insertNotice = SQLQuery(
        "insert notice",
        sql: """
            INSERT INTO refresh_worker.notices (\(Notice.added.names), number, next_try_at)
            SELECT \(Notice.added.placeholders),
                coalesce((SELECT max(number) FROM refresh_worker.notices WHERE user_id = $1), 0) + 1,
                CASE
                    WHEN EXISTS (SELECT 1 FROM refresh_worker.notices WHERE user_id = $1 AND \(isPending)) THEN NULL
                    ELSE $3
                END
            """
    )
    static let dueNotices = Notice.read.select(
        "due notices",
        "WHERE next_try_at <= $1 ORDER BY next_try_at, user_id LIMIT $2"
    )
    static let nextNotice = SQLQuery(
        "next notice",
        sql: "SELECT min(next_try_at) FROM refresh_worker.notices WHERE next_try_at IS NOT NULL"
    )
    static let pendingNotices = SQLQuery(
        "pending notices",
        sql: """
            SELECT count(*), min(pending_since) FROM (
                SELECT pending_since FROM refresh_worker.notices WHERE next_try_at IS NOT NULL
                ORDER BY next_try_at, user_id LIMIT \(PendingNotices.limit)
            ) AS part
            """
    )
    static let acceptNotice = finishNotice("accept notice", setting: "accepted_at")
    static let giveUpNotice = finishNotice("give up notice", setting: "given_up_at")

    private static func finishNotice(_ name: String, setting column: String) -> SQLQuery {
        SQLQuery(
            name,
            sql: """
                UPDATE refresh_worker.notices SET \(column) = $3, next_try_at = NULL
                WHERE user_id = $1 AND number = $2 AND id = $4 AND \(isPending)
                """
        )
    }

    /// Makes the next pending notice of a user due.
    static let followNotice = SQLQuery(
        "follow notice",
        sql: """
            UPDATE refresh_worker.notices SET next_try_at = coalesce(next_try_at, $2) WHERE user_id = $1 AND number = (
                SELECT min(number) FROM refresh_worker.notices WHERE user_id = $1 AND \(isPending)
            )
            """
    )
    static let postponeNotice = SQLQuery(
        "postpone notice",
        sql: """
            UPDATE refresh_worker.notices SET next_try_at = $3, attempts = attempts + 1
            WHERE user_id = $1 AND number = $2 AND id = $4 AND next_try_at IS NOT NULL
            """
    )
    static let expediteNotices = SQLQuery(
        "expedite notices",
        sql: "UPDATE refresh_worker.notices SET next_try_at = $1 WHERE next_try_at > $1"
    )
    /// The finished notices after the one at `$1` of the user `$2` with the number `$3`.
    static let finishedNotices = SQLQuery(
        "finished notices",
        sql: """
            SELECT at, user_id, number FROM refresh_worker.notices
            WHERE (at, user_id, number) > ($1, $2, $3) AND at >= $1 AND ($4 IS NULL OR user_id = $4) AND \(isFinished)
            ORDER BY at, user_id, number LIMIT $5
            """
    )
    /// `+at` keeps SQLite to the index of users.
    static let replayNotices = SQLQuery(
        "replay notices",
        sql: """
            UPDATE refresh_worker.notices SET accepted_at = NULL, given_up_at = NULL, attempts = 0, pending_since = $3
            WHERE user_id = $2 AND +at >= $1 AND \(isFinished)
            """
    )
    static let scheduleFirstNotices = SQLQuery(
        "schedule first notices",
        sql: """
            UPDATE refresh_worker.notices SET next_try_at = CASE
                WHEN EXISTS (
                    SELECT 1 FROM refresh_worker.notices AS older
                    WHERE older.user_id = notices.user_id AND older.number < notices.number
                        AND older.accepted_at IS NULL AND older.given_up_at IS NULL
                ) THEN NULL
                ELSE coalesce(next_try_at, $1)
            END
            WHERE user_id = $2 AND \(isPending)
            """
    )
    static let removeOldNotices = Notice.table.deleteSome(
        "remove old notices",
        where: "\(isFinished) AND coalesce(accepted_at, given_up_at) < $1"
    )
}

extension SQLStatement {
    /// Changes one notice. Its id belongs to the condition: a later notice of the user can have the number, once all
    /// earlier ones were removed.
    fileprivate static func change(_ notice: Notice, by query: SQLQuery, _ time: Timestamp) -> SQLStatement {
        let key = notice.key
        return SQLStatement(query, .text(key.userID), .integer(key.number), .time(time), .bytes(notice.id.bytes))
    }

    /// Adds a notice to the outbox.
    static func insertNotice(
        _ content: Notice.Content,
        id: NoticeID,
        ofUser userID: String,
        at now: Timestamp,
        trace: TraceContext?
    ) -> SQLStatement {
        let values: [SQLValue] = [.text(userID), .bytes(id.bytes), .time(now), .text(trace?.traceparent)]
        return SQLStatement(.insertNotice, values + content.values + [.time(now), .integer(0)])
    }
}

/// The place of a notice in the order in which a replay reads them.
private struct ReplayCursor: Sendable {
    let at: Timestamp
    let key: Notice.Key
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

    package func noticeAccepted(_ notice: Notice, at now: Timestamp) async throws {
        try await finish(notice, by: .acceptNotice, at: now)
    }

    package func noticeGivenUp(_ notice: Notice, at now: Timestamp) async throws {
        try await finish(notice, by: .giveUpNotice, at: now)
    }

    /// Exclusive, because transactions check for a pending notice before they add one.
    private func finish(_ notice: Notice, by query: SQLQuery, at now: Timestamp) async throws {
        try await change(
            [.change(notice, by: query, now), SQLStatement(.followNotice, .text(notice.userID), .time(now))],
            .exclusive
        )
    }

    package func noticePostponed(_ notice: Notice, until next: Timestamp) async throws {
        try await change([.change(notice, by: .postponeNotice, next)], .exclusive)
    }

    package func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp) async throws -> Int {
        try await replayNotices(since: start, ofUser: userID, at: now, pageSize: 500)
    }

    /// One transaction reads a page of finished notices (accepted or given up), and replays the notices of their users.
    func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp, pageSize: Int) async throws
        -> Int
    {
        // No user id is empty, so the empty text is before all of them.
        let first = ReplayCursor(at: start, key: Notice.Key(userID: "", number: 0))
        return try await changePages(after: first) { cursor in
            let page = try await rows(
                SQLStatement(
                    .finishedNotices,
                    .time(cursor.at),
                    .text(cursor.key.userID),
                    .integer(cursor.key.number),
                    .text(userID),
                    .limit(pageSize)
                ),
                by: .scan
            ) { ReplayCursor(at: $0.time(), key: Notice.Key(userID: $0.text(), number: $0.integer())) }
            guard let last = page.last else { return (0, nil) }
            // Ids are compared by their bytes, as the databases do.
            var seen: Set<[UInt8]> = []
            let users = page.map(\.key.userID).filter { seen.insert(Array($0.utf8)).inserted }
            let changed = try await change(
                users.map { SQLStatement(.replayNotices, .time(start), .text($0), .time(now)) }
                    + users.map { SQLStatement(.scheduleFirstNotices, .time(now), .text($0)) },
                .exclusive
            )
            let isLast = page.count < pageSize
            return (changed.prefix(users.count).reduce(0, +), isLast ? nil : last)
        }
    }
}
