import Base
import Crypto

/// The columns of a session in `sessions`.
enum SQLiteSessionRow {
    private static let changing = ["expires_at", "current_hash", "token_history", "successor", "successor_until"]
    static let columns = (["id", "user_id", "created_at"] + changing).joined(separator: ", ")

    static let insert: SQLiteQuery = {
        let placeholders = Array(repeating: "?", count: 3 + changing.count).joined(separator: ", ")
        return SQLiteQuery("insert session", "INSERT INTO sessions (\(columns)) VALUES (\(placeholders))")
    }()
    static let update: SQLiteQuery = {
        let list = changing.map { "\($0) = ?" }.joined(separator: ", ")
        return SQLiteQuery("update session", "UPDATE sessions SET \(list) WHERE id = ?")
    }()

    static func read(_ row: inout SQLiteRow) throws(StoreError) -> Session {
        guard let id = SessionID(bytes: row.optionalBlob() ?? []) else { throw damaged("The id of a session") }
        return Session(
            id: id,
            userID: row.text(),
            createdAt: Timestamp(milliseconds: row.integer()),
            expiresAt: Timestamp(milliseconds: row.integer()),
            family: try family(&row),
            successor: try sealed(row.optionalBlob()),
            successorUntil: row.timestamp()
        )
    }

    static func bindInsert(_ session: Session, to statement: Statement) {
        statement.bind(session.id.bytes)
        statement.bind(session.userID)
        statement.bind(session.createdAt)
        bindChanging(session, to: statement)
    }

    static func bindUpdate(_ session: Session, to statement: Statement) {
        bindChanging(session, to: statement)
        statement.bind(session.id.bytes)
    }

    private static func bindChanging(_ session: Session, to statement: Statement) {
        statement.bind(session.expiresAt)
        statement.bind(session.family.currentHash)
        statement.bind(session.family.historyBytes)
        statement.bind(session.successor?.bytes)
        statement.bind(session.successorUntil)
    }

    private static func family(_ row: inout SQLiteRow) throws(StoreError) -> TokenFamily {
        let currentHash = row.optionalBlob() ?? []
        guard let family = TokenFamily(currentHash: currentHash, historyBytes: row.optionalBlob()) else {
            throw damaged("The token history of a session")
        }
        return family
    }

    private static func sealed(_ bytes: [UInt8]?) throws(StoreError) -> SealedSecret? {
        guard let bytes else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw damaged("A token of a session")
        }
    }

    private static func damaged(_ what: String) -> StoreError {
        StoreError(damagedRow: what)
    }
}
