import Base
import Crypto

/// The columns of a grant: the one list of their names, types and values, in the order of the table.
///
/// Both databases, the checksum of a copy and the tests use it. The columns that a scan needs come first and the sealed
/// tokens last, so that a scan does not have to read them.
enum GrantColumn: String, CaseIterable, Sendable {
    case id
    case userID = "user_id"
    case createdAt = "created_at"
    case clientID = "client_id"
    case googleUserID = "google_user_id"
    case email
    case name
    case emailIsVerified = "email_is_verified"
    case scope
    case state
    case reason
    case since
    case generation
    case dueAt = "due_at"
    case attempts
    case failingSince = "failing_since"
    case lastSuccessAt = "last_success_at"
    case lastAttemptAt = "last_attempt_at"
    case usedOn = "used_on"
    case isProven = "is_proven"
    case revocationAskedAt = "revocation_asked_at"
    case suspectedSince = "suspected_since"
    case quickRefreshes = "quick_refreshes"
    case answerLostAt = "answer_lost_at"
    case formerTokensUntil = "former_tokens_until"
    case refreshExpiresAt = "refresh_expires_at"
    case refreshKey = "refresh_key"
    case accessObtainedAt = "access_obtained_at"
    case accessExpiresAt = "access_expires_at"
    case accessType = "access_type"
    case accessKey = "access_key"
    case refreshPrefixMark = "refresh_prefix_mark"
    case refreshDigestMark = "refresh_digest_mark"
    case refreshToken = "refresh_token"
    case accessToken = "access_token"
    case rotationClaims = "rotation_claims"
    case issuedTokens = "issued_tokens"

    /// `true` if the value follows from other columns: it exists for an index and is not read back.
    var isDerived: Bool {
        switch self {
        case .usedOn, .refreshKey, .accessKey: true
        default: false
        }
    }

    /// The columns that are read, in the order that ``GrantReader`` expects.
    static let read = allCases.filter { !$0.isDerived }

    /// The type of the values, and the constraint on them in SQL.
    var definition: (type: SQLType, constraint: String) {
        switch self {
        case .id: (.integer, "PRIMARY KEY CHECK (id >= 0)")
        case .userID: (.text, "NOT NULL UNIQUE")
        case .state: (.text, "NOT NULL CHECK (state IN (\(GrantState.allCases.sqlList)))")
        case .generation, .attempts: (.integer, "NOT NULL CHECK (\(rawValue) >= 0)")
        case .quickRefreshes: (.integer, "NOT NULL DEFAULT 0 CHECK (quick_refreshes >= 0)")
        case .createdAt, .since, .usedOn: (.integer, "NOT NULL")
        case .clientID, .scope, .reason: (.text, "NOT NULL")
        case .isProven: (.flag, "NOT NULL")
        case .dueAt, .failingSince, .lastSuccessAt, .lastAttemptAt, .revocationAskedAt, .suspectedSince, .answerLostAt,
            .formerTokensUntil, .refreshExpiresAt, .accessObtainedAt, .accessExpiresAt:
            (.integer, "")
        case .googleUserID, .email, .name, .refreshKey, .accessType, .accessKey: (.text, "")
        case .refreshPrefixMark, .refreshDigestMark, .refreshToken, .accessToken, .rotationClaims, .issuedTokens:
            (.bytes, "")
        case .emailIsVerified: (.flag, "")
        }
    }

    /// The constraints of the table that name several columns.
    static let constraints = """
        CHECK ((refresh_token IS NULL) = (refresh_key IS NULL)),
        CHECK (refresh_token IS NOT NULL OR refresh_expires_at IS NULL),
        CHECK (refresh_token IS NOT NULL OR refresh_prefix_mark IS NULL),
        CHECK ((refresh_digest_mark IS NULL) = (refresh_prefix_mark IS NULL)),
        CHECK ((access_token IS NULL) = (access_key IS NULL)),
        CHECK ((access_token IS NULL) = (access_obtained_at IS NULL)),
        CHECK ((access_token IS NULL) = (access_expires_at IS NULL)),
        CHECK ((access_token IS NULL) = (access_type IS NULL))
        """

    /// Returns the column's value.
    ///
    /// A `switch`, because each refresh reads a whole row: a list of closures or key paths costs an indirect call and
    /// reference counting for each value.
    ///
    /// SQLite binds the columns of a usual refresh with code of its own that is faster.
    func value(of grant: Grant) -> SQLValue {
        switch self {
        case .id: .integer(grant.id.rawValue)
        case .userID: .text(grant.userID)
        case .createdAt: .time(grant.createdAt)
        case .clientID: .text(grant.clientID)
        case .googleUserID: .text(grant.owner.googleUserID)
        case .email: .text(grant.owner.email)
        case .name: .text(grant.owner.name)
        case .emailIsVerified: .flag(grant.owner.emailIsVerified)
        case .scope: .text(grant.scope)
        case .state: .text(grant.state.rawValue)
        case .reason: .text(grant.reason.rawValue)
        case .since: .time(grant.since)
        case .generation: .integer(grant.generation)
        case .dueAt: .time(grant.dueAt)
        case .attempts: .integer(Int64(grant.attempts))
        case .failingSince: .time(grant.failingSince)
        case .lastSuccessAt: .time(grant.lastSuccessAt)
        case .lastAttemptAt: .time(grant.lastAttemptAt)
        case .usedOn: .integer(grant.dayOfUse)
        case .isProven: .flag(grant.isProven)
        case .revocationAskedAt: .time(grant.revocationAskedAt)
        case .suspectedSince: .time(grant.suspectedSince)
        case .quickRefreshes: .integer(Int64(grant.quickRefreshes))
        case .answerLostAt: .time(grant.answerLostAt)
        case .formerTokensUntil: .time(grant.formerTokensUntil)
        case .refreshExpiresAt: .time(grant.refreshToken?.expiresAt)
        case .refreshKey: .text(grant.refreshToken?.sealed.keyID.description)
        case .accessObtainedAt: .time(grant.accessToken?.obtainedAt)
        case .accessExpiresAt: .time(grant.accessToken?.expiresAt)
        case .accessType: .text(grant.accessToken?.type)
        case .accessKey: .text(grant.accessToken?.sealed.keyID.description)
        case .refreshPrefixMark: .bytes(grant.refreshToken?.marks?.prefix.bytes)
        case .refreshDigestMark: .bytes(grant.refreshToken?.marks?.digest.bytes)
        case .refreshToken: .bytes(grant.refreshToken?.sealed.bytes)
        case .accessToken: .bytes(grant.accessToken?.sealed.bytes)
        case .rotationClaims: .bytes(grant.rotationClaims.bytes)
        case .issuedTokens: .bytes(grant.issuedTokens.bytes)
        }
    }
}

extension Table<Grant>.Column {
    init(_ column: GrantColumn) {
        let (type, constraint) = column.definition
        self.init(column.rawValue, type, constraint) { column.value(of: $0) }
    }
}

extension Grant {
    static let table = Table<Grant>("grants", GrantColumn.allCases.map { .init($0) })

    static func read(_ row: inout some SQLRow) throws(StoreError) -> Grant {
        var reader = GrantReader()
        return try reader.read(&row)
    }
}

/// Reads rows of grants: the columns ``GrantColumn/read``, and after them the four of a lease.
///
/// A text that is the same in row after row is built once.
struct GrantReader {
    private var clientID = ""
    private var scope = ""
    private var state = ("", GrantState?.none)
    private var reason = ("", GrantReason.none)
    private var accessType = ""

    mutating func read(_ row: inout some SQLRow) throws(StoreError) -> Grant {
        let id = GrantID(rawValue: row.integer())
        let userID = row.text()
        let createdAt = row.time()
        clientID = row.text(like: clientID) ?? ""
        let owner = Grant.Owner(
            googleUserID: row.optionalText(),
            email: row.optionalText(),
            name: row.optionalText(),
            emailIsVerified: row.optionalFlag()
        )
        scope = row.text(like: scope) ?? ""
        let state = try readState(&row, of: id)
        readReason(&row)
        let since = row.time()
        let generation = row.integer()
        let dueAt = row.timestamp()
        let attempts = row.count()
        let failingSince = row.timestamp()
        let lastSuccessAt = row.timestamp()
        let lastAttemptAt = row.timestamp()
        let isProven = row.flag()
        let revocationAskedAt = row.timestamp()
        let suspectedSince = row.timestamp()
        let quickRefreshes = row.count()
        let answerLostAt = row.timestamp()
        let formerTokensUntil = row.timestamp()
        let refreshExpiresAt = row.timestamp()
        let accessObtainedAt = row.timestamp()
        let accessExpiresAt = row.timestamp()
        let type = row.text(like: accessType)
        if let type { accessType = type }
        let marks = TokenMarks(prefix: row.optionalBlob(), digest: row.optionalBlob())
        let refreshSealed = try row.sealed("A stored token of grant \(id)")
        let accessSealed = try row.sealed("A stored token of grant \(id)")
        var accessToken: Grant.AccessToken?
        if let accessSealed, let accessObtainedAt, let accessExpiresAt, let type {
            accessToken = Grant.AccessToken(
                sealed: accessSealed,
                obtainedAt: accessObtainedAt,
                expiresAt: accessExpiresAt,
                type: type
            )
        }
        return Grant(
            id: id,
            userID: userID,
            createdAt: createdAt,
            clientID: clientID,
            owner: owner,
            scope: scope,
            state: state,
            reason: reason.1,
            since: since,
            generation: generation,
            refreshToken: refreshSealed.map {
                Grant.RefreshToken(sealed: $0, marks: marks, expiresAt: refreshExpiresAt)
            },
            accessToken: accessToken,
            dueAt: dueAt,
            attempts: attempts,
            failingSince: failingSince,
            lastSuccessAt: lastSuccessAt,
            lastAttemptAt: lastAttemptAt,
            isProven: isProven,
            revocationAskedAt: revocationAskedAt,
            suspectedSince: suspectedSince,
            quickRefreshes: quickRefreshes,
            answerLostAt: answerLostAt,
            rotationClaims: RotationClaims(bytes: row.optionalBlob()),
            issuedTokens: IssuedTokens(bytes: row.optionalBlob()),
            formerTokensUntil: formerTokensUntil,
            lease: lease(&row)
        )
    }

    private mutating func readState(_ row: inout some SQLRow, of id: GrantID) throws(StoreError) -> GrantState {
        let text = row.text(like: state.0) ?? ""
        if let known = state.1, text == state.0 { return known }
        let read = try GrantState(stored: text, of: id)
        state = (text, read)
        return read
    }

    private mutating func readReason(_ row: inout some SQLRow) {
        let text = row.text(like: reason.0) ?? ""
        if text != reason.0 { reason = (text, GrantReason(rawValue: text)) }
    }

    private func lease(_ row: inout some SQLRow) -> Lease? {
        let owner = row.optionalText()
        let claim = row.optionalInteger()
        let epoch = row.optionalText()
        let until = row.optionalInteger()
        guard let owner, let claim, let epoch, let until else { return nil }
        return Lease(owner: owner, claim: claim, epoch: epoch, until: BootInstant(milliseconds: until))
    }
}

extension Grant {
    /// The day of the last refresh, or of the first connection if there was none.
    ///
    /// Stores find idle grants by it: an index on the day changes once a day, and not with each refresh.
    var dayOfUse: Int64 { (lastSuccessAt ?? createdAt).day }
}

extension Timestamp {
    /// The number of whole days between 1970 and this instant, in UTC; negative before 1970.
    var day: Int64 {
        let length: Int64 = 86_400_000
        return milliseconds >= 0 ? milliseconds / length : (milliseconds - length + 1) / length
    }
}

extension Sequence where Element: RawRepresentable<String> {
    /// The codes as they are listed in SQL: quoted, in alphabetical order.
    var sqlList: String { map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ") }
}
