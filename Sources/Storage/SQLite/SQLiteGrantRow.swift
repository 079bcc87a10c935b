import Crypto

/// A grant's row in `grants`, and its lease's row in `leases`; its columns are those of ``GrantColumn``.
///
/// The row also has a revision, which each statement that changes the row increments. By it a commit recognises that
/// the row is still the one that the claim read.
enum SQLiteGrantRow {
    /// The part of a row that an update writes.
    ///
    /// A statement that names an index's column costs an update of that index even if its value stays; `state`, which
    /// triggers use, costs a second pass over the row as well. In instructions, an update of all columns costs four
    /// times as much as one of those that every refresh changes.
    enum Extent: Int, CaseIterable {
        /// A refresh that changes neither the state nor anything else that it seldom changes.
        case refresh
        /// Any change of columns that are in no index but `grants_due`.
        case plain
        /// The first use on a day.
        case daily
        case all

        /// The update of a row that this transaction has read.
        var update: SQLQuery { SQLiteGrantRow.updates[rawValue] }
        /// The update of a row that is still as it was claimed, and still leased by that claim.
        var updateOfClaimed: SQLQuery { SQLiteGrantRow.updatesOfClaimed[rawValue] }

        fileprivate var columns: [GrantColumn] {
            switch self {
            case .refresh: SQLiteGrantRow.refresh
            case .plain: SQLiteGrantRow.plain
            case .daily: SQLiteGrantRow.daily + SQLiteGrantRow.plain
            case .all: SQLiteGrantRow.indexed + SQLiteGrantRow.daily + SQLiteGrantRow.plain
            }
        }
    }

    private static let fixed: [GrantColumn] = [.id, .userID, .createdAt]
    /// Columns of the other indexes, and columns that seldom change: written only if one of them changes, which
    /// ``keepsIndexed(_:from:)`` decides.
    private static let indexed: [GrantColumn] = [
        .clientID, .googleUserID, .email, .state, .refreshExpiresAt, .refreshKey, .accessKey, .refreshPrefixMark,
        .refreshDigestMark, .suspectedSince, .quickRefreshes, .answerLostAt, .formerTokensUntil,
    ]
    /// The column of `grants_by_use`, which changes once a day.
    private static let daily: [GrantColumn] = [.usedOn]
    /// The columns that every refresh changes, in the order in which ``bindUpdate(_:extent:to:)`` binds them.
    private static let refresh: [GrantColumn] = [
        .dueAt, .lastSuccessAt, .lastAttemptAt, .accessObtainedAt, .accessExpiresAt, .accessToken, .issuedTokens,
    ]
    /// These and all others that are columns of no index but `grants_due`.
    private static let plain = GrantColumn.allCases.filter { !(fixed + indexed + daily).contains($0) }

    static let queries = GrantQueries(columns: columns, source: source(), increment: ", \(increment)")
    /// The columns that ``GrantReader`` expects from ``source(on:)``.
    static let columns =
        (GrantColumn.read.map(\.rawValue) + ["owner", "claim", "epoch", "until"]).joined(separator: ", ")

    /// The source of the columns; with a condition, as the right side of a join.
    static func source(on condition: String? = nil) -> String {
        let grants = condition.map { "grants ON \($0)" } ?? "grants"
        return "\(grants) LEFT JOIN \(LeaseFile.schema).leases ON grant_id = id"
    }

    static let definitions =
        "\(Grant.table.definitions(in: .sqlite)), revision INTEGER NOT NULL DEFAULT 0"

    static let insert = Grant.table.add("insert grant")
    private static let updates = Extent.allCases.map { extent in
        SQLQuery("update grant, \(extent)", "\(update(extent)) WHERE id = ?")
    }
    private static let updatesOfClaimed = Extent.allCases.map { extent in
        SQLQuery(
            "update claimed grant, \(extent)",
            """
            \(update(extent)) WHERE id = ? AND revision = ?
                AND (SELECT claim FROM \(LeaseFile.schema).leases WHERE grant_id = id) = ?
            """
        )
    }

    /// The assignment in every statement that changes rows of `grants`.
    static let increment = "revision = revision + 1"

    private static func update(_ extent: Extent) -> String {
        "UPDATE grants SET \(extent.columns.map { "\($0.rawValue) = ?" }.joined(separator: ", ")), \(increment)"
    }

    /// Binds the columns of an update, and the id.
    static func bindUpdate(_ grant: Grant, extent: Extent, to statement: Statement) {
        switch extent {
        // Each refresh gets here: without the list, it takes a tenth of the instructions.
        case .refresh:
            statement.bind(grant.dueAt)
            statement.bind(grant.lastSuccessAt)
            statement.bind(grant.lastAttemptAt)
            statement.bind(grant.accessToken?.obtainedAt)
            statement.bind(grant.accessToken?.expiresAt)
            statement.bind(grant.accessToken?.sealed.bytes)
            statement.bind(grant.issuedTokens.bytes)
        case .plain, .daily, .all: statement.bind(extent.columns.map { $0.value(of: grant) })
        }
        statement.bind(grant.id.rawValue)
    }

    /// Returns the part of the row that an update from `former` to `grant` has to write.
    static func extent(of grant: Grant, from former: Grant) -> Extent {
        guard keepsIndexed(grant, from: former) else { return .all }
        guard grant.dayOfUse == former.dayOfUse else { return .daily }
        return keepsPlain(grant, from: former) ? .refresh : .plain
    }

    /// `true` if no column of ``plain`` changes but those of ``refresh``.
    private static func keepsPlain(_ grant: Grant, from former: Grant) -> Bool {
        grant.reason == former.reason
            && grant.generation == former.generation
            && grant.refreshToken?.sealed == former.refreshToken?.sealed
            && grant.accessToken?.type == former.accessToken?.type
            && grant.scope == former.scope
            && grant.owner == former.owner
            && grant.since == former.since
            && grant.attempts == former.attempts
            && grant.failingSince == former.failingSince
            && grant.isProven == former.isProven
            && grant.revocationAskedAt == former.revocationAskedAt
            && grant.rotationClaims == former.rotationClaims
    }

    private static func keepsIndexed(_ grant: Grant, from former: Grant) -> Bool {
        grant.state == former.state
            && grant.clientID == former.clientID
            && grant.owner.googleUserID == former.owner.googleUserID
            && grant.owner.email == former.owner.email
            && grant.refreshToken?.expiresAt == former.refreshToken?.expiresAt
            && grant.refreshToken?.marks == former.refreshToken?.marks
            && grant.refreshToken?.sealed.keyID == former.refreshToken?.sealed.keyID
            && grant.accessToken?.sealed.keyID == former.accessToken?.sealed.keyID
            && grant.suspectedSince == former.suspectedSince
            && grant.quickRefreshes == former.quickRefreshes
            && grant.answerLostAt == former.answerLostAt
            && grant.formerTokensUntil == former.formerTokensUntil
    }
}
