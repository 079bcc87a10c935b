import Base
import Crypto

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
