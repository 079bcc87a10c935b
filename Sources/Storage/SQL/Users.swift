import Base

extension User {
    static let table = Table<User>(
        "users",
        [
            .init("user_id", .text, "PRIMARY KEY") { .text($0.id) },
            .init("created_at", .integer, "NOT NULL") { .time($0.createdAt) },
            .init("email", .text) { .text($0.email) },
            .init("email_is_verified", .flag) { .flag($0.emailIsVerified) },
            .init("name", .text) { .text($0.name) },
            .init("picture", .text) { .text($0.picture) },
            .init("google_user_id", .text) { .text($0.googleUserID) },
            .init("last_login_at", .integer) { .time($0.lastLoginAt) },
            .init("is_active", .flag, "NOT NULL DEFAULT true") { .flag($0.isActive) },
            .init("deleted_until", .integer) { .time($0.deletedUntil) },
            .init("tokens_until", .integer) { .time($0.tokensUntil) },
            .init("is_from_sign_in", .flag, "NOT NULL DEFAULT false") { .flag($0.isFromSignIn) },
        ]
    )

    static func read(_ row: inout some SQLRow) throws(StoreError) -> User {
        User(
            id: row.text(),
            createdAt: row.time(),
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

extension SQLQuery {
    static let userByID = User.table.select("user by id", "WHERE user_id = $1")
    static let userOfAccount = User.table.select(
        "user of a Google account",
        "WHERE user_id = (SELECT user_id FROM refresh_worker.accounts WHERE google_user_id = $1)"
    )
    static let usersByEmail = User.table.select(
        "users by e-mail",
        "WHERE email IS NOT NULL AND lower(email) = lower($1 COLLATE \"C\") ORDER BY user_id"
    )
    /// No user id is empty, so the empty text is before all of them.
    static let pageOfUsers = User.table.select("page of users", "WHERE user_id > $1 ORDER BY user_id LIMIT $2")
    /// Inserts no user whose account at Google is another's.
    static let insertUser = User.table.insert("insert user", where: hasItsAccount)
    static let updateUser = User.table.update("update user", where: hasItsAccount)
    private static let hasItsAccount: String = {
        let account = User.table.placeholder(of: "google_user_id")
        return "(\(account) IS NULL OR \(isAccount(account, ofUser: "$1")))"
    }()

    /// The user of each account at Google that a user has signed in with. It is written before the user.
    ///
    /// It is a table, and not an index of the users: an index that is unique cannot be spread over several servers.
    static let accounts = Table<[SQLValue]>(
        "accounts",
        [.init("google_user_id", .text, "PRIMARY KEY"), .init("user_id", .text, "NOT NULL")]
    )
    /// Gives the account `$1` to the user `$2`, who is about to be inserted, unless it is another's.
    fileprivate static let takeAccountOfNewUser = accounts.insert(
        "take account of new user",
        where: "NOT EXISTS (SELECT 1 FROM refresh_worker.users WHERE user_id = $2)"
    )
    /// Gives the account `$1` to the stored user `$2`, unless it is another's.
    fileprivate static let takeAccount = accounts.insert(
        "take account",
        where: "EXISTS (SELECT 1 FROM refresh_worker.users WHERE user_id = $2)"
    )
    /// Frees the stored account of the user `$2`, who is about to have the account `$1`, or none.
    fileprivate static let leaveAccount = SQLQuery(
        "leave account",
        sql: """
            DELETE FROM refresh_worker.accounts
            WHERE google_user_id = (SELECT google_user_id FROM refresh_worker.users WHERE user_id = $2) AND user_id = $2
                AND ($1 IS NULL OR google_user_id <> $1 AND \(isAccount("$1", ofUser: "$2")))
            """
    )
    /// Gives their accounts to the users from `$1` to `$2`, who were copied.
    static let restoreAccounts = SQLQuery(
        "restore accounts",
        sql: """
            INSERT INTO refresh_worker.accounts (google_user_id, user_id)
            SELECT google_user_id, user_id FROM refresh_worker.users
            WHERE user_id >= $1 AND user_id <= $2 AND google_user_id IS NOT NULL
            """
    )

    static let removeUser = User.table.delete("remove user")
    static let moveSessions = SQLQuery(
        "move sessions",
        sql: "UPDATE refresh_worker.sessions SET user_id = $2 WHERE user_id = $1"
    )

    /// The condition that the account is the user's in `accounts`.
    private static func isAccount(_ account: String, ofUser user: String) -> String {
        """
        EXISTS (
            SELECT 1 FROM refresh_worker.accounts AS taken
            WHERE taken.google_user_id = \(account) AND taken.user_id = \(user)
        )
        """
    }
}

extension SQLStore {
    package func user(_ id: String) async throws -> User? {
        try await first(SQLStatement(.userByID, .text(id)), User.read)
    }

    package func users(after id: String?, atMost count: Int) async throws -> [User] {
        try await rows(SQLStatement(.pageOfUsers, .text(id ?? ""), .limit(count)), by: .scan, User.read)
    }

    package func users(withEmail email: String) async throws -> [User] {
        try await rows(SQLStatement(.usersByEmail, .text(email)), by: .scan, User.read)
    }
}

extension SQLTransaction {
    func user(_ id: String) throws -> User? { try first(SQLStatement(.userByID, .text(id)), User.read) }

    func user(withGoogleUserID googleUserID: String) throws -> User? {
        try first(SQLStatement(.userOfAccount, .text(googleUserID)), User.read)
    }

    func users(withEmail email: String) throws -> [User] {
        try rows(SQLStatement(.usersByEmail, .text(email)), User.read)
    }

    func insert(_ user: User) throws {
        var statements = [SQLStatement(.insertUser, User.table.values(of: user))]
        if let account = user.googleUserID {
            statements.insert(SQLStatement(.takeAccountOfNewUser, .text(account), .text(user.id)), at: 0)
        }
        guard try change(statements).last == 1 else {
            throw StoreError(.conflict, "There is such a user already, or another has the same account at Google.")
        }
    }

    func update(_ user: User) throws {
        var statements = [
            SQLStatement(.leaveAccount, .text(user.googleUserID), .text(user.id)),
            SQLStatement(.updateUser, User.table.values(of: user)),
        ]
        if let account = user.googleUserID {
            statements.insert(SQLStatement(.takeAccount, .text(account), .text(user.id)), at: 0)
        }
        guard try change(statements).last == 1 else {
            throw StoreError(
                .conflict,
                "There is no such user to update, or another has the same account at Google."
            )
        }
        // A deleted or forgotten user has lost the address.
        if user.email == nil { wipe() }
    }

    /// In an order that violates no foreign key.
    func move(user id: String, to other: String, at now: Timestamp) throws {
        _ = try change([
            SQLStatement(.leaveAccount, .text(nil), .text(id)),
            SQLStatement(.moveSessions, .text(id), .text(other)),
            SQLStatement(.moveGrants, .text(id), .text(other)),
            SQLStatement(.removeUser, .text(id)),
        ])
        try recordJoin(of: id, with: other, at: now)
        forgetGrants()
    }
}
