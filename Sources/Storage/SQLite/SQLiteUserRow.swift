import Base

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
