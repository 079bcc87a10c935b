import Base

/// The columns of a user in `users`.
enum PostgresUserRow {
    typealias Column = Table<User>.Column

    static let all = [
        Column("user_id", .text { $0.id }),
        Column("created_at", .integer { $0.createdAt.milliseconds }),
        Column("email", .text { $0.email }),
        Column("email_is_verified", .flag { $0.emailIsVerified }),
        Column("name", .text { $0.name }),
        Column("picture", .text { $0.picture }),
        Column("google_user_id", .text { $0.googleUserID }),
        Column("last_login_at", .integer { $0.lastLoginAt?.milliseconds }),
        Column("is_active", .flag { $0.isActive }),
        Column("deleted_until", .integer { $0.deletedUntil?.milliseconds }),
        Column("tokens_until", .integer { $0.tokensUntil?.milliseconds }),
        Column("is_from_sign_in", .flag { $0.isFromSignIn }),
    ]
    static let columns = all.map(\.name).joined(separator: ", ")
    private static let insert = Table.insert("insert user", into: "refresh_worker.users", all)
    /// Skips an account at Google that another user has: the unique index would otherwise end the whole transaction.
    private static let update: PostgresQuery = {
        let plain = Table.update("update user", "refresh_worker.users", all)
        let isFree = """
            NOT EXISTS (
                SELECT 1 FROM refresh_worker.users AS other
                WHERE other.google_user_id = new.google_user_id AND other.user_id <> new.user_id
            )
            """
        return PostgresQuery(plain.name, "\(plain.text) AND \(isFree)")
    }()

    /// Adds the user, unless a user with this id or with this account exists.
    @discardableResult
    static func addInsert(_ user: User, to batch: inout StatementBatch) -> Int {
        batch.add(insert) { Table.bind([user], all, to: &$0) }
    }

    static func addUpdate(_ user: User, to batch: inout StatementBatch) -> Int {
        batch.add(update) { Table.bind([user], all, to: &$0) }
    }

    static func read(_ row: inout PostgresRow) throws(StatementFailure) -> User {
        User(
            id: row.text(),
            createdAt: Timestamp(milliseconds: row.integer()),
            email: row.optionalText(),
            emailIsVerified: row.optionalFlag(),
            name: row.optionalText(),
            picture: row.optionalText(),
            googleUserID: row.optionalText(),
            lastLoginAt: row.timestamp(),
            isActive: row.flag(),
            deletedUntil: row.timestamp(),
            tokensUntil: row.timestamp(),
            isFromSignIn: row.flag()
        )
    }
}
