import Base
import Crypto

/// A grant's row in `grants`, and its lease's row in `leases`, with the columns of ``Grant/table``.
///
enum SQLiteGrantRow {
    /// The part of a row that an update writes.
    ///
    /// A statement that names an index's column costs an update of that index even if its value stays. The column
    /// `state`, which triggers use, costs a second pass over the row as well. In instructions, an update of all columns
    /// costs four times as much as one of those that every refresh changes.
    enum Part: Int, CaseIterable {
        /// A refresh that changes neither the state nor anything else that it seldom changes.
        case refresh
        /// Any change of columns that are in no index but `grants_due`.
        case unindexed
        /// The first use on a day.
        case daily
        case all

        /// The update of a row that this transaction has read.
        var update: SQLQuery { SQLiteGrantRow.updates[rawValue] }
        /// The update of a row that is still as it was claimed, and still leased by that claim.
        var updateOfClaimed: SQLQuery { SQLiteGrantRow.updatesOfClaimed[rawValue] }

        fileprivate var columns: Table<Grant> { SQLiteGrantRow.parts[rawValue] }
    }

    private static let fixed = ["id", "user_id", "connection", "created_at"]
    /// Columns of the other indexes, and columns that seldom change: written only if one of them changes, which
    /// ``Grant/keepsSeldomChangedColumns(of:)`` decides.
    private static let indexed = [
        "client_id", "google_user_id", "email", "state", "refresh_expires_at", "refresh_consented_at", "expiry_noticed",
        "refresh_key", "access_key", "binding_key", "refresh_prefix_mark", "refresh_digest_mark", "suspected_since",
        "quick_refreshes", "answer_lost_at", "former_tokens_until",
    ]
    /// The column of `grants_by_use`, which changes once a day.
    private static let daily = ["used_on"]
    /// The columns that every refresh changes, in the order in which ``bindUpdate(_:part:to:)`` binds them.
    private static let refresh = [
        "due_at", "last_success_at", "last_attempt_at", "access_obtained_at", "access_expires_at", "access_token",
        "issued_tokens",
    ]
    /// These and all others that are columns of no index but `grants_due`.
    private static let unindexed = Grant.table.without(fixed + indexed + daily).columns.map(\.name)
    /// The columns of each part.
    private static let parts = [refresh, unindexed, daily + unindexed, indexed + daily + unindexed]
        .map { Grant.table.only($0) }

    static let queries = GrantQueries(columns: columns, source: source())
    /// The columns that ``GrantRowReader`` expects from ``source(on:)``.
    static let columns = "\(Grant.readColumns.names), owner, claim, epoch, until"

    /// The source of the columns, or with a condition the right side of a join.
    static func source(on condition: String? = nil) -> String {
        let grants = condition.map { "grants ON \($0)" } ?? "grants"
        return "\(grants) LEFT JOIN \(LeaseFile.schema).leases ON grant_id = id"
    }

    static let insert = Grant.table.add("insert grant")
    private static let updates = Part.allCases.map { part in
        SQLQuery("update grant, \(part)", sql: "\(update(part)) WHERE id = ?")
    }
    private static let updatesOfClaimed = Part.allCases.map { part in
        SQLQuery(
            "update claimed grant, \(part)",
            sql: """
                \(update(part)) WHERE id = ? AND revision = ?
                    AND (SELECT claim FROM \(LeaseFile.schema).leases WHERE grant_id = id) = ?
                """
        )
    }

    private static func update(_ part: Part) -> String {
        "UPDATE grants SET \(part.columns.columns.map { "\($0.name) = ?" }.joined(separator: ", ")), \(Grant.increment)"
    }

    /// Binds the columns of an update, and the id.
    static func bindUpdate(_ grant: Grant, part: Part, to statement: Statement) {
        switch part {
        // Each refresh gets here: without the list, it takes a tenth of the instructions.
        case .refresh:
            statement.bind(grant.dueAt)
            statement.bind(grant.lastSuccessAt)
            statement.bind(grant.lastAttemptAt)
            statement.bind(grant.accessToken?.obtainedAt)
            statement.bind(grant.accessToken?.expiresAt)
            statement.bind(grant.accessToken?.sealed.bytes)
            statement.bind(grant.issuedTokens.bytes)
        case .unindexed, .daily, .all: statement.bind(part.columns.values(of: grant))
        }
        statement.bind(grant.id.rawValue)
    }

    /// Returns the part of the row that an update from `former` to `grant` has to write.
    static func part(of grant: Grant, from former: Grant) -> Part {
        guard grant.keepsSeldomChangedColumns(of: former) else { return .all }
        guard grant.dayOfUse == former.dayOfUse else { return .daily }
        return grant.keepsWideColumns(of: former) && grant.keepsOtherColumns(of: former) ? .refresh : .unindexed
    }
}
