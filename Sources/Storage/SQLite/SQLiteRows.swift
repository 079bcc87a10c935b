import Base
import Crypto

/// The columns of a user in `users`.
enum SQLiteUserRow {
    private static let changing = [
        "created_at", "email", "email_is_verified", "name", "picture", "google_user_id", "last_login_at", "is_active",
        "deleted_until", "tokens_until", "is_from_sign_in",
    ]
    static let columns = (["user_id"] + changing).joined(separator: ", ")

    static let insert: SQLiteQuery = {
        let placeholders = Array(repeating: "?", count: 1 + changing.count).joined(separator: ", ")
        return SQLiteQuery("insert whole user", "INSERT INTO users (\(columns)) VALUES (\(placeholders))")
    }()
    static let update: SQLiteQuery = {
        let list = changing.map { "\($0) = ?" }.joined(separator: ", ")
        return SQLiteQuery("update user", "UPDATE users SET \(list) WHERE user_id = ?")
    }()

    static func read(_ row: inout SQLiteRow) throws(StoreError) -> User {
        User(
            id: row.text(),
            createdAt: Timestamp(milliseconds: row.integer()),
            email: row.optionalText(),
            emailIsVerified: row.optionalInteger().map { $0 != 0 },
            name: row.optionalText(),
            picture: row.optionalText(),
            googleUserID: row.optionalText(),
            lastLoginAt: row.timestamp(),
            isActive: row.integer() != 0,
            deletedUntil: row.timestamp(),
            tokensUntil: row.timestamp(),
            isFromSignIn: row.integer() != 0
        )
    }

    static func bindInsert(_ user: User, to statement: Statement) {
        statement.bind(user.id)
        bindChanging(user, to: statement)
    }

    static func bindUpdate(_ user: User, to statement: Statement) {
        bindChanging(user, to: statement)
        statement.bind(user.id)
    }

    private static func bindChanging(_ user: User, to statement: Statement) {
        statement.bind(user.createdAt)
        statement.bind(user.email)
        statement.bind(user.emailIsVerified)
        statement.bind(user.name)
        statement.bind(user.picture)
        statement.bind(user.googleUserID)
        statement.bind(user.lastLoginAt)
        statement.bind(user.isActive)
        statement.bind(user.deletedUntil)
        statement.bind(user.tokensUntil)
        statement.bind(user.isFromSignIn)
    }
}

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

/// The columns of a notice in `notices`.
enum SQLiteNoticeRow {
    static let columns = "seq, nonce, user_id, at, \(Notice.Columns.names), pending_since, attempts"

    static func read(_ row: inout SQLiteRow) throws(StoreError) -> Notice {
        let sequence = row.integer()
        let nonce = UInt32(truncatingIfNeeded: row.integer())
        let userID = row.text()
        let at = Timestamp(milliseconds: row.integer())
        let columns = Notice.Columns(
            kind: row.text(),
            grant: row.optionalInteger(),
            from: row.optionalText(),
            to: row.optionalText(),
            reason: row.optionalText(),
            lost: row.optionalText(),
            granted: row.optionalText(),
            session: row.optionalText()
        )
        guard let content = columns.content else {
            throw StoreError(damagedRow: "Notice \(sequence)")
        }
        return Notice(
            sequence: sequence,
            nonce: nonce,
            userID: userID,
            at: at,
            content: content,
            pendingSince: Timestamp(milliseconds: row.integer()),
            attempts: Int(row.integer())
        )
    }

    /// Binds the columns of a content, in the order of their names.
    static func bind(_ columns: Notice.Columns, to statement: Statement) {
        statement.bind(columns.kind)
        statement.bind(columns.grant)
        statement.bind(columns.from)
        statement.bind(columns.to)
        statement.bind(columns.reason)
        statement.bind(columns.lost)
        statement.bind(columns.granted)
        statement.bind(columns.session)
    }
}
