import Base
import Crypto

/// The rows of a grant in `grants` and `grant_schedule`; its columns are those of ``GrantColumn``.
enum PostgresGrantRow {
    /// The two rows of a grant, as a source of ``columns``.
    static let source =
        "refresh_worker.grants AS g JOIN refresh_worker.grant_schedule AS s ON s.grant_id = g.id"

    private static let key: [GrantColumn] = [.id]
    private static let fixed: [GrantColumn] = [.userID, .createdAt]
    /// The columns that the statement for a refresh omits if none of them changes, which
    /// ``keepsSeldomChanged(_:from:)`` decides.
    private static let seldomChanged: [GrantColumn] = [
        .clientID, .googleUserID, .email, .name, .emailIsVerified, .scope, .state, .refreshExpiresAt, .refreshKey,
        .refreshPrefixMark, .refreshDigestMark, .accessKey, .accessType, .refreshToken, .suspectedSince,
        .quickRefreshes, .answerLostAt, .rotationClaims, .formerTokensUntil,
    ]
    /// The columns of `grants`: the due time is in `grant_schedule`.
    private static let ofGrant = GrantColumn.allCases.filter { $0 != .dueAt }
    /// All others: every update writes them.
    private static let oftenChanged = ofGrant.filter { !(key + fixed + seldomChanged).contains($0) }

    /// The columns of `grants` as `CREATE TABLE` defines them.
    static let definitions = grants.definitions(in: .postgres)

    private static let grants = table(ofGrant)
    private static let schedule = Table<Grant>(
        "grant_schedule",
        [
            .init("grant_id", .integer) { .integer($0.id.rawValue) },
            .init(.clientID),
            .init(.dueAt),
            .init("lease_owner", .text) { .text($0.lease?.owner) },
            .init("lease_claim", .integer) { .integer($0.lease?.claim) },
            .init("lease_epoch", .text) { .text($0.lease?.epoch) },
            .init("lease_until", .integer) { .integer($0.lease?.until.milliseconds) },
        ]
    )

    private static func table(_ columns: [GrantColumn]) -> Table<Grant> {
        Table(Grant.table.name, columns.map { .init($0) })
    }

    /// The columns that ``GrantReader`` expects from ``source``.
    static let columns =
        (GrantColumn.read.map { $0 == .dueAt ? "s.due_at" : "g.\($0.rawValue)" }
        + ["s.lease_owner", "s.lease_claim", "s.lease_epoch", "s.lease_until"]).joined(separator: ", ")

    static let queries = GrantQueries(columns: columns, source: source)
    /// They lock grants against claims and plain refreshes until the transaction ends.
    ///
    /// Both rows are locked: only a locked row is read again if a plain refresh has changed it since the snapshot.
    static let lockingQueries = GrantQueries(columns: columns, source: source, lock: lock)
    static let lock = " FOR UPDATE OF s FOR NO KEY UPDATE OF g"

    static let changing = table(key + seldomChanged + oftenChanged)
    static let refreshed = table(key + oftenChanged)

    private static let insertGrant = grants.insert(
        "insert grant",
        where: """
            NOT EXISTS (
                SELECT 1 FROM refresh_worker.users WHERE users.user_id = $2 AND deleted_until IS NOT NULL
            )
            """
    )
    /// Runs only if the grant exists: its foreign key would otherwise end the whole transaction.
    private static let insertSchedule = schedule.insert(
        "insert schedule",
        where: "EXISTS (SELECT 1 FROM refresh_worker.grants WHERE grants.id = $1)"
    )
    private static let updateWhole = changing.updateMany("update whole grants")
    private static let updateRefreshed = refreshed.updateMany("update grants")
    private static let updateSchedule = schedule.updateMany("update schedule")
    private static let restoreGrants = grants.insertMany("restore grants")
    private static let restoreSchedules = schedule.insertMany("restore schedules")

    /// Returns the statements that add a grant; the number of rows that the first one changes shows if it was added.
    static func insert(_ grant: Grant) -> [SQLStatement] {
        [
            SQLStatement(insertGrant, Self.grants.values(of: grant)),
            SQLStatement(insertSchedule, schedule.values(of: grant)),
        ]
    }

    static func restore(_ grants: [Grant]) -> [SQLStatement] {
        [
            SQLStatement(restoreGrants, Self.grants.arrays(of: grants)),
            SQLStatement(restoreSchedules, schedule.arrays(of: grants)),
        ]
    }

    /// Adds the statements that store `whole` and `refreshed`; for the latter, the columns of `seldomChanged` are
    /// omitted.
    static func addUpdates(whole: [Grant], refreshed: [Grant], to batch: inout StatementBatch) {
        if !whole.isEmpty { batch.add(SQLStatement(updateWhole, changing.arrays(of: whole))) }
        if !refreshed.isEmpty { batch.add(SQLStatement(updateRefreshed, self.refreshed.arrays(of: refreshed))) }
        let all = whole + refreshed
        if !all.isEmpty { batch.add(SQLStatement(updateSchedule, schedule.arrays(of: all))) }
    }

    /// `true` if an update from `former` to `grant` leaves all columns of `seldomChanged` as they are.
    static func keepsSeldomChanged(_ grant: Grant, from former: Grant) -> Bool {
        grant.state == former.state
            && grant.clientID == former.clientID
            && grant.owner == former.owner
            && grant.scope == former.scope
            && grant.refreshToken == former.refreshToken
            && grant.accessToken?.sealed.keyID == former.accessToken?.sealed.keyID
            && grant.accessToken?.type == former.accessToken?.type
            && grant.suspectedSince == former.suspectedSince
            && grant.quickRefreshes == former.quickRefreshes
            && grant.answerLostAt == former.answerLostAt
            && grant.rotationClaims == former.rotationClaims
            && grant.formerTokensUntil == former.formerTokensUntil
    }
}
