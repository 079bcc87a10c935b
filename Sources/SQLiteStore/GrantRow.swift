import Secrets
import Store

/// A grant's row in `grants`, and its lease's row in `leases`; its columns are those of ``GrantColumn``.
enum GrantRow {
    /// The part of a row that an update writes.
    ///
    /// A statement that names an index's column costs an update of that index even if its value stays; `state`, which
    /// triggers use, costs a second pass over the row as well. In instructions, an update of all columns costs four
    /// times as much as one of those that every refresh changes.
    enum Extent {
        case plain
        /// The first use on a day.
        case daily
        case all

        var update: Query {
            switch self {
            case .plain: updatePlain
            case .daily: updateDaily
            case .all: updateAll
            }
        }

        fileprivate var columns: [GrantColumn] {
            switch self {
            case .plain: GrantRow.plain
            case .daily: GrantRow.daily + GrantRow.plain
            case .all: GrantRow.indexed + GrantRow.daily + GrantRow.plain
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
    /// All others, which are columns of no index but `grants_due`: every update writes them.
    private static let plain = GrantColumn.allCases.filter { !(fixed + indexed + daily).contains($0) }
    private static let all = GrantColumn.allCases

    /// The columns that ``Grant/read(_:)`` expects from ``source``.
    static let columns =
        (GrantColumn.read.map(\.rawValue) + ["owner", "claim", "epoch", "until"]).joined(separator: ", ")
    static let source = "grants LEFT JOIN \(LeaseFile.schema).leases ON grant_id = id"

    /// The columns as `CREATE TABLE` defines them.
    static let definitions = all.map { column in
        let (type, constraint) = column.definition
        return switch type {
        case .integer: "\(column.rawValue) INTEGER \(constraint)"
        case .text: "\(column.rawValue) TEXT \(constraint)"
        case .bytes: "\(column.rawValue) BLOB \(constraint)"
        case .flag: "\(column.rawValue) INTEGER \(constraint) CHECK (\(column.rawValue) IN (0, 1))"
        }
    }.joined(separator: ", ")

    static let insert: Query = {
        let placeholders = all.map { _ in "?" }.joined(separator: ", ")
        let names = all.map(\.rawValue).joined(separator: ", ")
        return Query("insert grant", "INSERT INTO grants (\(names)) VALUES (\(placeholders))")
    }()
    private static let updatePlain = update("update grant", .plain)
    private static let updateDaily = update("update grant and its day", .daily)
    private static let updateAll = update("update whole grant", .all)

    private static func update(_ name: String, _ extent: Extent) -> Query {
        let list = extent.columns.map { "\($0.rawValue) = ?" }.joined(separator: ", ")
        return Query(name, "UPDATE grants SET \(list) WHERE id = ?")
    }

    static func read(_ row: inout Row) throws(StoreError) -> Grant { try Grant.read(&row) }

    static func bindInsert(_ grant: Grant, to statement: Statement) {
        bind(all, of: grant, to: statement)
    }

    static func bindUpdate(_ grant: Grant, extent: Extent, to statement: Statement) {
        switch extent {
        case .plain: break
        case .daily: bind(daily, of: grant, to: statement)
        case .all:
            bind(indexed, of: grant, to: statement)
            bind(daily, of: grant, to: statement)
        }
        bind(plain, of: grant, to: statement)
        statement.bind(grant.id.rawValue)
    }

    private static func bind(_ columns: [GrantColumn], of grant: Grant, to statement: Statement) {
        var statement = statement
        for column in columns { column.write(grant, to: &statement) }
    }

    /// Returns the part of the row that an update from `former` to `grant` has to write.
    static func extent(of grant: Grant, from former: Grant) -> Extent {
        guard keepsIndexed(grant, from: former) else { return .all }
        return grant.dayOfUse == former.dayOfUse ? .plain : .daily
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

    static func state(_ text: String, of id: GrantID) throws(StoreError) -> GrantState {
        guard let state = GrantState(rawValue: text) else { throw StoreError(damagedRow: "The state of grant \(id)") }
        return state
    }
}
