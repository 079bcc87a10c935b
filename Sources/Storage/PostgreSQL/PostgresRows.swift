import Base
import Crypto

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

/// The columns of a session in `sessions`.
enum PostgresSessionRow {
    typealias Column = Table<Session>.Column

    static let all = [
        Column("id", .bytes { $0.id.bytes }),
        Column("user_id", .text { $0.userID }),
        Column("created_at", .integer { $0.createdAt.milliseconds }),
        Column("expires_at", .integer { $0.expiresAt.milliseconds }),
        Column("current_hash", .bytes { $0.family.currentHash }),
        Column("token_history", .bytes { $0.family.historyBytes }),
        Column("successor", .bytes { $0.successor?.bytes }),
        Column("successor_until", .integer { $0.successorUntil?.milliseconds }),
    ]
    static let columns = all.map(\.name).joined(separator: ", ")
    /// Only for a stored user: the foreign key would otherwise end the whole transaction.
    private static let insert = Table.insert(
        "insert session",
        into: "refresh_worker.sessions",
        all,
        where: "EXISTS (SELECT 1 FROM refresh_worker.users WHERE users.user_id = new.user_id)"
    )
    private static let update = Table.update("update session", "refresh_worker.sessions", all)

    @discardableResult
    static func addInsert(_ session: Session, to batch: inout StatementBatch) -> Int {
        batch.add(insert) { Table.bind([session], all, to: &$0) }
    }

    static func addUpdate(_ session: Session, to batch: inout StatementBatch) -> Int {
        batch.add(update) { Table.bind([session], all, to: &$0) }
    }

    static func read(_ row: inout PostgresRow) throws(StatementFailure) -> Session {
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

    private static func family(_ row: inout PostgresRow) throws(StatementFailure) -> TokenFamily {
        let currentHash = row.optionalBlob() ?? []
        guard let family = TokenFamily(currentHash: currentHash, historyBytes: row.optionalBlob()) else {
            throw damaged("The token history of a session")
        }
        return family
    }

    private static func sealed(_ bytes: [UInt8]?) throws(StatementFailure) -> SealedSecret? {
        guard let bytes else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw damaged("A token of a session")
        }
    }

    private static func damaged(_ what: String) -> StatementFailure {
        StatementFailure(StoreError(damagedRow: what))
    }
}

/// The columns of a notice in `notices`.
enum PostgresNoticeRow {
    static let columns = "seq, nonce, user_id, at, \(Notice.Columns.names), pending_since, attempts"

    static func read(_ row: inout PostgresRow) throws(StatementFailure) -> Notice {
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
            throw StatementFailure(StoreError(damagedRow: "Notice \(sequence)"))
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
}
