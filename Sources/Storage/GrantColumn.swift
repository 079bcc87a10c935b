package import Base
package import Crypto

/// The type of a column's values.
package enum ColumnType: Sendable {
    case integer
    case text
    case bytes
    case flag
}

/// The columns of a grant: the one list of their names, types and values, in the order of the table.
///
/// Both stores, the checksum of a copy and the tests use it. The columns that a scan needs come first and the sealed
/// tokens last, so that a scan does not have to read them.
package enum GrantColumn: String, CaseIterable, Sendable {
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
    package var isDerived: Bool {
        switch self {
        case .usedOn, .refreshKey, .accessKey: true
        default: false
        }
    }

    /// The columns that are read, in the order that ``Grant/read(_:)`` and SQLite's `GrantReader` expect.
    package static let read = allCases.filter { !$0.isDerived }

    /// The type of the values, and the constraint on them in SQL.
    package var definition: (type: ColumnType, constraint: String) {
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
    package static let constraints = """
        CHECK ((refresh_token IS NULL) = (refresh_key IS NULL)),
        CHECK (refresh_token IS NOT NULL OR refresh_expires_at IS NULL),
        CHECK (refresh_token IS NOT NULL OR refresh_prefix_mark IS NULL),
        CHECK ((refresh_digest_mark IS NULL) = (refresh_prefix_mark IS NULL)),
        CHECK ((access_token IS NULL) = (access_key IS NULL)),
        CHECK ((access_token IS NULL) = (access_obtained_at IS NULL)),
        CHECK ((access_token IS NULL) = (access_expires_at IS NULL)),
        CHECK ((access_token IS NULL) = (access_type IS NULL))
        """

    /// Writes the column's value.
    ///
    /// It is inlinable, like ``Grant/read(_:)``, so that each store may compile it for its own type of row. SQLite
    /// binds the columns of a usual refresh, and reads rows, with code of its own that is faster.
    @inlinable
    package func write(_ grant: Grant, to row: inout some ColumnWriter) {
        switch self {
        case .id: row.write(grant.id.rawValue)
        case .userID: row.write(grant.userID)
        case .createdAt: row.write(grant.createdAt)
        case .clientID: row.write(grant.clientID)
        case .googleUserID: row.write(grant.owner.googleUserID)
        case .email: row.write(grant.owner.email)
        case .name: row.write(grant.owner.name)
        case .emailIsVerified: row.write(grant.owner.emailIsVerified)
        case .scope: row.write(grant.scope)
        case .state: row.write(grant.state.rawValue)
        case .reason: row.write(grant.reason.rawValue)
        case .since: row.write(grant.since)
        case .generation: row.write(grant.generation)
        case .dueAt: row.write(grant.dueAt)
        case .attempts: row.write(Int64(grant.attempts))
        case .failingSince: row.write(grant.failingSince)
        case .lastSuccessAt: row.write(grant.lastSuccessAt)
        case .lastAttemptAt: row.write(grant.lastAttemptAt)
        case .usedOn: row.write(grant.dayOfUse)
        case .isProven: row.write(grant.isProven)
        case .revocationAskedAt: row.write(grant.revocationAskedAt)
        case .suspectedSince: row.write(grant.suspectedSince)
        case .quickRefreshes: row.write(Int64(grant.quickRefreshes))
        case .answerLostAt: row.write(grant.answerLostAt)
        case .formerTokensUntil: row.write(grant.formerTokensUntil)
        case .refreshExpiresAt: row.write(grant.refreshToken?.expiresAt)
        case .refreshKey: row.write(grant.refreshToken?.sealed.keyID.description)
        case .accessObtainedAt: row.write(grant.accessToken?.obtainedAt)
        case .accessExpiresAt: row.write(grant.accessToken?.expiresAt)
        case .accessType: row.write(grant.accessToken?.type)
        case .accessKey: row.write(grant.accessToken?.sealed.keyID.description)
        case .refreshPrefixMark: row.write(grant.refreshToken?.marks?.prefix.bytes)
        case .refreshDigestMark: row.write(grant.refreshToken?.marks?.digest.bytes)
        case .refreshToken: row.write(grant.refreshToken?.sealed.bytes)
        case .accessToken: row.write(grant.accessToken?.sealed.bytes)
        case .rotationClaims: row.write(grant.rotationClaims.bytes)
        case .issuedTokens: row.write(grant.issuedTokens.bytes)
        }
    }
}

extension Grant {
    /// Reads the columns ``GrantColumn/read``, and after them the four of a lease.
    @inlinable
    package static func read<Row: ColumnReader>(_ row: inout Row) throws(Row.Damage) -> Grant {
        let id = GrantID(rawValue: row.integer())
        let userID = row.text()
        let createdAt = Timestamp(milliseconds: row.integer())
        let clientID = row.text()
        let googleUserID = row.optionalText()
        let email = row.optionalText()
        let name = row.optionalText()
        let emailIsVerified = row.optionalFlag()
        let scope = row.text()
        guard let state = GrantState(rawValue: row.text()) else { throw row.damage("The state of grant \(id)") }
        let reason = GrantReason(rawValue: row.text())
        let since = Timestamp(milliseconds: row.integer())
        let generation = row.integer()
        let dueAt = row.timestamp()
        let attempts = Int(row.integer())
        let failingSince = row.timestamp()
        let lastSuccessAt = row.timestamp()
        let lastAttemptAt = row.timestamp()
        let isProven = row.optionalFlag() ?? false
        let revocationAskedAt = row.timestamp()
        let suspectedSince = row.timestamp()
        let quickRefreshes = Int(row.integer())
        let answerLostAt = row.timestamp()
        let formerTokensUntil = row.timestamp()
        let refreshExpiresAt = row.timestamp()
        let accessObtainedAt = row.timestamp()
        let accessExpiresAt = row.timestamp()
        let accessType = row.optionalText()
        let marks = TokenMarks(prefix: row.optionalBlob(), digest: row.optionalBlob())
        let refreshSealed = try row.sealed(of: id)
        let accessSealed = try row.sealed(of: id)
        let rotationClaims = RotationClaims(bytes: row.optionalBlob())
        let issuedTokens = IssuedTokens(bytes: row.optionalBlob())
        let lease = row.lease()

        var accessToken: AccessToken?
        if let accessSealed, let accessObtainedAt, let accessExpiresAt, let accessType {
            accessToken = AccessToken(
                sealed: accessSealed,
                obtainedAt: accessObtainedAt,
                expiresAt: accessExpiresAt,
                type: accessType
            )
        }
        return Grant(
            id: id,
            userID: userID,
            createdAt: createdAt,
            clientID: clientID,
            owner: Owner(googleUserID: googleUserID, email: email, name: name, emailIsVerified: emailIsVerified),
            scope: scope,
            state: state,
            reason: reason,
            since: since,
            generation: generation,
            refreshToken: refreshSealed.map { RefreshToken(sealed: $0, marks: marks, expiresAt: refreshExpiresAt) },
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
            rotationClaims: rotationClaims,
            issuedTokens: issuedTokens,
            formerTokensUntil: formerTokensUntil,
            lease: lease
        )
    }
}

extension Grant {
    /// The day of the last refresh, or of the first connection if there was none.
    ///
    /// Stores find idle grants by it: an index on the day changes once a day, and not with each refresh.
    package var dayOfUse: Int64 { (lastSuccessAt ?? createdAt).day }
}

extension Timestamp {
    /// The number of whole days between 1970 and this instant, in UTC; negative before 1970.
    package var day: Int64 {
        let length: Int64 = 86_400_000
        return milliseconds >= 0 ? milliseconds / length : (milliseconds - length + 1) / length
    }
}

extension Sequence where Element: RawRepresentable<String> {
    /// The codes as they are listed in SQL: quoted, in alphabetical order.
    package var sqlList: String { map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ") }
}

/// A row that is read from left to right.
package protocol ColumnReader {
    /// The error for a value that this program cannot have stored.
    associatedtype Damage: Error

    mutating func optionalInteger() -> Int64?
    mutating func optionalText() -> String?
    mutating func optionalBlob() -> [UInt8]?
    mutating func optionalFlag() -> Bool?

    func damage(_ what: String) -> Damage
}

extension ColumnReader {
    /// Reads the next column, which the schema declares NOT NULL.
    @inlinable
    package mutating func integer() -> Int64 { optionalInteger() ?? 0 }

    /// Reads the next column, which the schema declares NOT NULL.
    @inlinable
    package mutating func text() -> String { optionalText() ?? "" }

    @inlinable
    package mutating func timestamp() -> Timestamp? { optionalInteger().map { Timestamp(milliseconds: $0) } }

    @inlinable
    package mutating func sealed(of id: GrantID) throws(Damage) -> SealedSecret? {
        guard let bytes = optionalBlob() else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw damage("A stored token of grant \(id)")
        }
    }

    @inlinable
    package mutating func lease() -> Lease? {
        let owner = optionalText()
        let claim = optionalInteger()
        let epoch = optionalText()
        let until = optionalInteger()
        guard let owner, let claim, let epoch, let until else { return nil }
        return Lease(owner: owner, claim: claim, epoch: epoch, until: BootInstant(milliseconds: until))
    }
}

/// The value of one column; one of the four, which is `nil` for NULL.
package struct ColumnValue: Hashable, ColumnWriter {
    package var integer: Int64?
    package var text: String?
    package var bytes: [UInt8]?
    package var flag: Bool?

    package init() {}

    @inlinable
    package init(of column: GrantColumn, in grant: Grant) {
        column.write(grant, to: &self)
    }

    @inlinable
    package mutating func write(_ value: Int64?) { integer = value }
    @inlinable
    package mutating func write(_ value: String?) { text = value }
    @inlinable
    package mutating func write(_ value: [UInt8]?) { bytes = value }
    @inlinable
    package mutating func write(_ value: Bool?) { flag = value }
}

/// A row that is written: takes the values of columns, one after another.
package protocol ColumnWriter {
    mutating func write(_ value: Int64?)
    mutating func write(_ value: String?)
    mutating func write(_ value: [UInt8]?)
    mutating func write(_ value: Bool?)
}

extension ColumnWriter {
    @inlinable
    package mutating func write(_ value: Timestamp?) { write(value?.milliseconds) }
}
