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
    static let userOfAccount = User.table.select("user of a Google account", "WHERE google_user_id = $1")
    static let usersByEmail = User.table.select(
        "users by e-mail",
        "WHERE email IS NOT NULL AND lower(email) = lower($1 COLLATE \"C\") ORDER BY user_id"
    )
    /// No user id is empty, so the empty text is before all of them.
    static let pageOfUsers = User.table.select("page of users", "WHERE user_id > $1 ORDER BY user_id LIMIT $2")
    static let insertUser = User.table.insert("insert user")
    /// Skips an account at Google that another user has.
    static let updateUser = User.table.update(
        "update user",
        where: """
            NOT EXISTS (
                SELECT 1 FROM refresh_worker.users AS other
                WHERE other.google_user_id = $\(User.table.columns.firstIndex { $0.name == "google_user_id" }.map { $0 + 1 } ?? 0)
                    AND other.user_id <> $1
            )
            """
    )
    static let removeUser = User.table.delete("remove user")
    static let moveSessions = SQLQuery(
        "move sessions",
        sql: "UPDATE refresh_worker.sessions SET user_id = $2 WHERE user_id = $1"
    )
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
        try changeOne(
            SQLStatement(.insertUser, User.table.values(of: user)),
            else: "There is such a user already, or another has the same account at Google."
        )
    }

    func update(_ user: User) throws {
        try changeOne(
            SQLStatement(.updateUser, User.table.values(of: user)),
            else: "There is no such user to update, or another has the same account at Google."
        )
        // A deleted or forgotten user has lost the address.
        if user.email == nil { wipe() }
    }

    /// In an order that violates no foreign key.
    func move(user id: String, to other: String) throws {
        _ = try change([
            SQLStatement(.moveSessions, .text(id), .text(other)),
            SQLStatement(Self.grantQueries.move, .text(id), .text(other)),
            SQLStatement(.removeUser, .text(id)),
        ])
        forgetGrants()
    }
}
