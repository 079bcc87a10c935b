import Base
import Crypto

/// The rows of a grant in `grants` and `grant_schedule`; its columns are those of ``GrantColumn``.
enum PostgresGrantRow {
    typealias Column = Table<Grant>.Column

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
    static let definitions = ofGrant.map { column in
        let (type, constraint) = column.definition
        return switch type {
        case .integer: "\(column.rawValue) bigint \(constraint)"
        case .text: "\(column.rawValue) text COLLATE \"C\" \(constraint)"
        case .bytes: "\(column.rawValue) bytea \(constraint)"
        case .flag: "\(column.rawValue) boolean \(constraint)"
        }
    }.joined(separator: ", ")

    static let schedule = [
        Column("grant_id", .integer { $0.id.rawValue }),
        Column(.clientID),
        Column(.dueAt),
        Column("lease_owner", .text { $0.lease?.owner }),
        Column("lease_claim", .integer { $0.lease?.claim }),
        Column("lease_epoch", .text { $0.lease?.epoch }),
        Column("lease_until", .integer { $0.lease?.until.milliseconds }),
    ]

    /// The columns that ``Grant/read(_:)`` expects from ``source``.
    static let columns =
        (GrantColumn.read.map { $0 == .dueAt ? "s.due_at" : "g.\($0.rawValue)" }
        + ["s.lease_owner", "s.lease_claim", "s.lease_epoch", "s.lease_until"]).joined(separator: ", ")

    static let allOfGrant = ofGrant.map { Column($0) }
    static let changing = (key + seldomChanged + oftenChanged).map { Column($0) }
    static let refreshed = (key + oftenChanged).map { Column($0) }

    private static let insertGrant = Table.insert(
        "insert grant",
        into: "refresh_worker.grants",
        allOfGrant,
        where: """
            NOT EXISTS (
                SELECT 1 FROM refresh_worker.users WHERE users.user_id = new.user_id AND deleted_until IS NOT NULL
            )
            """
    )
    /// Runs only if the grant exists: its foreign key would otherwise end the whole transaction.
    private static let insertSchedule = Table.insert(
        "insert schedule",
        into: "refresh_worker.grant_schedule",
        schedule,
        where: "EXISTS (SELECT 1 FROM refresh_worker.grants WHERE grants.id = new.grant_id)"
    )
    private static let updateWhole = Table.update("update whole grants", "refresh_worker.grants", changing)
    private static let updateRefreshed = Table.update("update grants", "refresh_worker.grants", refreshed)
    private static let updateSchedule = Table.update("update schedule", "refresh_worker.grant_schedule", schedule)

    static func addInsert(_ grant: Grant, to batch: inout StatementBatch) -> Int {
        batch.add(insertGrant) { Table.bind([grant], allOfGrant, to: &$0) }
    }

    static func addScheduleInsert(_ grant: Grant, to batch: inout StatementBatch) {
        batch.add(insertSchedule) { Table.bind([grant], schedule, to: &$0) }
    }

    /// Adds the statements that store `whole` and `refreshed`; for the latter, the columns of `seldomChanged` are
    /// omitted.
    static func addUpdates(whole: [Grant], refreshed: [Grant], to batch: inout StatementBatch) {
        if !whole.isEmpty { batch.add(updateWhole) { Table.bind(whole, changing, to: &$0) } }
        if !refreshed.isEmpty { batch.add(updateRefreshed) { Table.bind(refreshed, self.refreshed, to: &$0) } }
        let all = whole + refreshed
        if !all.isEmpty { batch.add(updateSchedule) { Table.bind(all, schedule, to: &$0) } }
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

    static func read(_ row: inout PostgresRow) throws(StatementFailure) -> Grant { try Grant.read(&row) }

    static func state(_ text: String, of id: GrantID) throws(StatementFailure) -> GrantState {
        guard let state = GrantState(rawValue: text) else {
            throw StatementFailure(StoreError(damagedRow: "The state of grant \(id)"))
        }
        return state
    }
}

extension Table.Column where Element == Grant {
    fileprivate init(_ column: GrantColumn) {
        let reading: Reading =
            switch column.definition.type {
            case .integer: .integer { ColumnValue(of: column, in: $0).integer }
            case .text: .text { ColumnValue(of: column, in: $0).text }
            case .bytes: .bytes { ColumnValue(of: column, in: $0).bytes }
            case .flag: .flag { ColumnValue(of: column, in: $0).flag }
            }
        self.init(column.rawValue, reading)
    }
}
