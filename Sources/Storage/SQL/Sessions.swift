import Base
import Crypto

extension Session {
    static let table = Table<Session>(
        "sessions",
        key: ["user_id", "id"],
        [
            .init("user_id", .text, "NOT NULL REFERENCES refresh_worker.users (user_id)") { .text($0.userID) },
            .init("id", .bytes, "NOT NULL CHECK (length(id) = 16)") { .bytes($0.id.bytes) },
            .init("created_at", .integer, "NOT NULL") { .time($0.createdAt) },
            .init("expires_at", .integer, "NOT NULL") { .time($0.expiresAt) },
            .init("current_hash", .bytes, "NOT NULL") { .bytes($0.family.currentHash) },
            // Every token that might still come.
            .init("token_history", .bytes) { .bytes($0.family.historyBytes) },
            .init("successor", .bytes) { .bytes($0.successor?.bytes) },
            .init("successor_until", .integer) { .time($0.successorUntil) },
        ]
    )
    fileprivate static let changing = table.without("created_at")

    static func read(_ row: inout some SQLRow) throws(StoreError) -> Session {
        let userID = row.text()
        guard let id = SessionID(bytes: row.blob()) else { throw StoreError(damagedRow: "The id of a session") }
        let createdAt = row.time()
        let expiresAt = row.time()
        guard let family = TokenFamily(currentHash: row.blob(), historyBytes: row.optionalBlob()) else {
            throw StoreError(damagedRow: "The token history of a session")
        }
        return Session(
            id: id,
            userID: userID,
            createdAt: createdAt,
            expiresAt: expiresAt,
            family: family,
            successor: try row.sealed("A token of a session"),
            successorUntil: row.timestamp()
        )
    }
}

extension SQLQuery {
    static let sessionByID = Session.table.select("session by id", "WHERE user_id = $1 AND id = $2")
    /// Only for a stored user: on PostgreSQL the foreign key would otherwise end the whole transaction.
    fileprivate static let insertSession = Session.table.insert(
        "insert session",
        where: "EXISTS (SELECT 1 FROM refresh_worker.users WHERE users.user_id = $1)"
    )
    fileprivate static let updateSession = Session.changing.update("update session")
    static let endSession = SQLQuery(
        "end session",
        sql: "DELETE FROM refresh_worker.sessions WHERE user_id = $1 AND id = $2 RETURNING successor IS NOT NULL"
    )
    static let endSessionsOfUser = SQLQuery(
        "end sessions of user",
        sql: "DELETE FROM refresh_worker.sessions WHERE user_id = $1 RETURNING successor IS NOT NULL"
    )
    static let sessionOfUser = SQLQuery(
        "session of user",
        sql: "SELECT 1 FROM refresh_worker.sessions WHERE user_id = $1 LIMIT 1"
    )
    static let removeExpiredSessions = Session.table.deleteSome("remove expired sessions", where: "expires_at <= $1")
    // Two conditions, so that each uses the index.
    static let removeExpiredSuccessors = removeSuccessors("expired", where: "successor_until <= $1")
    /// Of rows that a clock that was ahead has stored.
    static let removeFutureSuccessors = removeSuccessors("future", where: "successor_until > $1")

    private static func removeSuccessors(_ name: String, where condition: String) -> SQLQuery {
        SQLQuery(
            "remove \(name) successors",
            sql: """
                UPDATE refresh_worker.sessions SET successor = NULL WHERE (user_id, id) IN (
                    SELECT user_id, id FROM refresh_worker.sessions WHERE successor IS NOT NULL AND \(condition) LIMIT $2
                )
                """
        )
    }

    static let securityEvents = Table<[SQLValue]>(
        "security_events",
        [.init("jti", .text, "PRIMARY KEY"), .init("at", .integer, "NOT NULL")]
    )
    static let recordSecurityEvent = securityEvents.insert("record security event")
    static let securityEvent = securityEvents.select("security event", "WHERE jti = $1")
    /// The first of the identifiers between a prefix that ends with a colon, and the same with the next sign.
    static let securityEventOfPrefix = SQLQuery(
        "security event of prefix",
        sql: "SELECT jti, at FROM refresh_worker.security_events WHERE jti > $1 AND jti < $2 ORDER BY jti LIMIT 1"
    )
    /// Of the identifiers between a prefix that ends with a colon, and the same with the next sign, a semicolon.
    static let trimSecurityEvents = SQLQuery(
        "trim security events",
        sql: """
            DELETE FROM refresh_worker.security_events WHERE jti > $1 AND jti < $2
                AND at <= (SELECT at FROM refresh_worker.security_events WHERE jti > $1 AND jti < $2
                    ORDER BY at DESC LIMIT 1 OFFSET $3)
            """
    )
    /// Version 0.1.0 recorded tokens that users left for as long as security events.
    static let keepLeftTokens = SQLQuery(
        "keep left tokens",
        sql: """
            UPDATE refresh_worker.security_events SET at = at + \(Retention.leftTokens.wholeMilliseconds)
            WHERE at < $1 AND substr(jti, 1, \(Retention.leftTokenPrefix.utf8.count)) = '\(Retention.leftTokenPrefix)'
            """
    )
    static let removeOldSecurityEvents = securityEvents.deleteSome("remove old security events", where: "at < $1")
}

extension SQLStatement {
    /// Finds the first of the identifiers that begin with a prefix, which ends with a colon.
    static func firstIdentifier(from prefix: String) -> SQLStatement {
        let end = prefix.dropLast() + ";"
        return SQLStatement(.securityEventOfPrefix, .text(prefix), .text(String(end)))
    }
}

/// A row of `security_events`.
struct RecordedSecurityEvent: Sendable {
    var identifier: String
    var at: Timestamp

    static func read(_ row: inout some SQLRow) -> RecordedSecurityEvent {
        RecordedSecurityEvent(identifier: row.text(), at: row.time())
    }
}

/// The numbers of rows that one call of ``Store/removeExpired(by:at:)`` removed.
package struct RemovedCounts: Hashable, Sendable {
    /// The most rows of each kind that one call removes, so that other writers do not wait long.
    package static let limit = 500

    /// Expired sessions.
    package var sessions = 0
    /// Sealed successors whose grace has ended.
    package var successors = 0
    package var securityEvents = 0
    package var notices = 0
    /// Deleted users, with their grants and histories.
    package var users = 0

    /// `true` if another call might find more.
    package var mayHaveMore: Bool {
        [sessions, successors, securityEvents, notices, users].contains { $0 >= Self.limit }
    }
}

extension SQLStore {
    package func session(_ id: SessionID, ofUser userID: String) async throws -> Session? {
        try await first(SQLStatement(.sessionByID, .text(userID), .bytes(id.bytes)), Session.read)
    }

    package func identifier(from prefix: String) async throws -> String? {
        try await first(.firstIdentifier(from: prefix), RecordedSecurityEvent.read)?.identifier
    }

    package func removeExpired(by end: Timestamp, at now: Timestamp) async throws -> RemovedCounts {
        let remove = { (query: SQLQuery, end: Timestamp) in
            SQLStatement(query, .time(end), .limit(RemovedCounts.limit))
        }
        let secret = try await change(
            [
                remove(.removeExpiredSessions, end),
                remove(.removeExpiredSuccessors, now),
                remove(.removeFutureSuccessors, now + Session.maximumGrace),
            ] + Self.removeTombstones.map { remove($0, end) },
            [.exclusive, .wipes]
        )
        let endOfEvents = end - Retention.securityEvents
        let old = try await change(
            [
                SQLStatement(.keepLeftTokens, .time(endOfEvents)),
                remove(.removeOldSecurityEvents, endOfEvents),
                remove(.removeOldNotices, end - Retention.notices),
            ],
            .exclusive
        )
        return RemovedCounts(
            sessions: secret[0],
            successors: secret[1] + secret[2],
            securityEvents: old[1],
            notices: old[2],
            users: secret.last ?? 0
        )
    }
}

extension SQLTransaction {
    func session(_ id: SessionID, ofUser userID: String) throws -> Session? {
        try first(SQLStatement(.sessionByID, .text(userID), .bytes(id.bytes)), Session.read)
    }

    func insert(_ session: Session) throws {
        try changeOne(
            SQLStatement(.insertSession, Session.table.values(of: session)),
            else: "There is such a session already, or no such user."
        )
    }

    func update(_ session: Session) throws {
        try changeOne(
            SQLStatement(.updateSession, Session.changing.values(of: session)),
            else: "There is no \(session) to update."
        )
    }

    func hasSession(ofUser userID: String) throws -> Bool {
        try first(SQLStatement(.sessionOfUser, .text(userID))) { _ in true } ?? false
    }

    func endSession(_ id: SessionID, ofUser userID: String) throws {
        _ = try end(SQLStatement(.endSession, .text(userID), .bytes(id.bytes)))
    }

    func endSessions(ofUser userID: String) throws -> Int { try end(SQLStatement(.endSessionsOfUser, .text(userID))) }

    private func end(_ statement: SQLStatement) throws -> Int {
        let hadSuccessor = try rows(statement) { $0.flag() }
        if hadSuccessor.contains(true) { wipe() }
        return hadSuccessor.count
    }

    func recordOnce(_ identifier: String, at now: Timestamp) throws -> Bool {
        try change([SQLStatement(.recordSecurityEvent, .text(identifier), .time(now))]) == [1]
    }

    func identifier(from prefix: String) throws -> String? {
        try first(.firstIdentifier(from: prefix), RecordedSecurityEvent.read)?.identifier
    }

    func time(ofIdentifier identifier: String) throws -> Timestamp? {
        try first(SQLStatement(.securityEvent, .text(identifier)), RecordedSecurityEvent.read)?.at
    }

    func keepLast(_ count: Int, identifiersFrom prefix: String) throws {
        let end = prefix.dropLast() + ";"
        _ = try change([SQLStatement(.trimSecurityEvents, .text(prefix), .text(String(end)), .limit(count))])
    }
}
