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
}

extension SQLStore {
    package func session(_ id: SessionID, ofUser userID: String) async throws -> Session? {
        try await first(SQLStatement(.sessionByID, .text(userID), .bytes(id.bytes)), Session.read)
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
}
