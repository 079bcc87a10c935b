import Base
import Crypto

extension Grant {
    /// The columns of a grant, in the order of SQLite's table (``PostgresGrantRow`` has another one). The columns that a
    /// scan needs come first and the sealed tokens last, so that a scan does not have to read them.
    static let table = Table<Grant>(
        "grants",
        [
            .init("id", .integer, "PRIMARY KEY CHECK (id >= 0)") { .integer($0.id.rawValue) },
            .init("user_id", .text, "NOT NULL") { .text($0.userID) },
            .init("connection", .text, "NOT NULL") { .text($0.connection.description) },
            .init("created_at", .integer, "NOT NULL") { .time($0.createdAt) },
            .init("client_id", .text, "NOT NULL") { .text($0.clientID) },
            .init("google_user_id", .text) { .text($0.owner.googleUserID) },
            .init("email", .text) { .text($0.owner.email) },
            .init("name", .text) { .text($0.owner.name) },
            .init("email_is_verified", .flag) { .flag($0.owner.emailIsVerified) },
            .init("scope", .text, "NOT NULL") { .text($0.scope) },
            .init("state", .text, "NOT NULL CHECK (state IN (\(GrantState.allCases.sqlList)))") {
                .text($0.state.rawValue)
            },
            .init("reason", .text, "NOT NULL") { .text($0.reason.rawValue) },
            .init("since", .integer, "NOT NULL") { .time($0.since) },
            .init("generation", .integer, "NOT NULL CHECK (generation >= 0)") { .integer($0.generation) },
            .init("due_at", .integer) { .time($0.dueAt) },
            .init("attempts", .integer, "NOT NULL CHECK (attempts >= 0)") { .integer(Int64($0.failures)) },
            .init("failing_since", .integer) { .time($0.failingSince) },
            .init("last_success_at", .integer) { .time($0.lastSuccessAt) },
            .init("last_attempt_at", .integer) { .time($0.lastAttemptAt) },
            .init("used_on", .integer, "NOT NULL") { .integer($0.dayOfUse) },
            .init("is_proven", .flag, "NOT NULL") { .flag($0.isProven) },
            .init("revocation_asked_at", .integer) { .time($0.revocationAskedAt) },
            .init("suspected_since", .integer) { .time($0.suspectedSince) },
            .init("quick_refreshes", .integer, "NOT NULL DEFAULT 0 CHECK (quick_refreshes >= 0)") {
                .integer(Int64($0.quickRefreshes))
            },
            .init("answer_lost_at", .integer) { .time($0.answerLostAt) },
            .init("former_tokens_until", .integer) { .time($0.formerTokensUntil) },
            .init("refresh_expires_at", .integer) { .time($0.refreshToken?.expiresAt) },
            .init("refresh_consented_at", .integer) { .time($0.refreshToken?.consentedAt) },
            .init("expiry_noticed", .flag, "NOT NULL DEFAULT false") {
                .flag($0.refreshToken?.isExpiryNoticed ?? false)
            },
            .init("refresh_key", .text) { .text($0.refreshToken?.sealed.keyID.description) },
            .init("access_obtained_at", .integer) { .time($0.accessToken?.obtainedAt) },
            .init("access_expires_at", .integer) { .time($0.accessToken?.expiresAt) },
            .init("access_type", .text) { .text($0.accessToken?.type) },
            .init("access_key", .text) { .text($0.accessToken?.sealed.keyID.description) },
            .init("binding_key", .text) { .text($0.refreshToken?.bindingKeyID?.description) },
            .init("refresh_prefix_mark", .bytes) { .bytes($0.refreshToken?.marks?.prefix.bytes) },
            .init("refresh_digest_mark", .bytes) { .bytes($0.refreshToken?.marks?.digest.bytes) },
            .init("refresh_token", .bytes) { .bytes($0.refreshToken?.sealed.bytes) },
            .init("access_token", .bytes) { .bytes($0.accessToken?.sealed.bytes) },
            .init("rotation_claims", .bytes) {
                .bytes($0.rotationClaims.isEmpty ? nil : $0.rotationClaims.flatMap { [UInt8](bigEndian: $0) })
            },
            .init("issued_tokens", .bytes) { .bytes($0.issuedTokens.bytes) },
            .init("labels", .text) { .text($0.labels.stored) },
        ]
    )

    /// The constraints of the table that name several columns.
    static let constraints = """
        UNIQUE (user_id, connection),
        CHECK ((refresh_token IS NULL) = (refresh_key IS NULL)),
        CHECK (refresh_token IS NOT NULL OR refresh_expires_at IS NULL),
        CHECK (refresh_token IS NOT NULL OR refresh_consented_at IS NULL),
        CHECK (refresh_token IS NOT NULL OR refresh_prefix_mark IS NULL),
        CHECK (refresh_token IS NOT NULL OR binding_key IS NULL),
        CHECK ((refresh_digest_mark IS NULL) = (refresh_prefix_mark IS NULL)),
        CHECK ((access_token IS NULL) = (access_key IS NULL)),
        CHECK ((access_token IS NULL) = (access_obtained_at IS NULL)),
        CHECK ((access_token IS NULL) = (access_expires_at IS NULL)),
        CHECK ((access_token IS NULL) = (access_type IS NULL))
        """

    /// The column that counts the changes of a row. By it a commit recognises that the row is still the one that the
    /// claim read, also after a dump, a move or a logical replication.
    static func revision(in dialect: SQLDialect) -> String {
        "revision \(dialect.name(of: .integer)) NOT NULL DEFAULT 0"
    }
    /// The assignment in every statement that changes rows of `grants`.
    static let increment = "revision = revision + 1"

    /// The columns that are read, in the order that ``GrantRowReader`` expects: the values of the others follow from
    /// these, and exist for an index.
    static let readColumns = table.without("used_on", "refresh_key", "access_key")

    static func read(_ row: inout some SQLRow) throws(StoreError) -> Grant {
        var reader = GrantRowReader()
        return try reader.read(&row)
    }
}

/// Reads rows of grants: the columns ``Grant/readColumns``, and after them the four of a lease.
///
/// A text that is the same in row after row is built once. It is in the module of the stores: for another module Swift
/// does not specialise it, which costs three times the instructions.
struct GrantRowReader {
    private var connection = ConnectionID.default
    private var clientID = ""
    private var scope = ""
    private var state = ("", GrantState?.none)
    private var reason = ("", GrantReason.none)
    private var accessType = ""

    mutating func read(_ row: inout some SQLRow) throws(StoreError) -> Grant {
        let id = GrantID(rawValue: row.integer())
        let userID = row.text()
        readConnection(&row)
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
        let generation = Int64(row.count())
        let dueAt = row.timestamp()
        let failures = row.count()
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
        let refreshConsentedAt = row.timestamp()
        let isExpiryNoticed = row.flag()
        let accessObtainedAt = row.timestamp()
        let accessExpiresAt = row.timestamp()
        let type = row.text(like: accessType)
        if let type { accessType = type }
        let bindingKeyID = try readBindingKeyID(&row, of: id)
        let marks = TokenMarks(prefix: row.optionalBlob(), digest: row.optionalBlob())
        let refreshSealed = try row.sealed("A stored token of grant \(id)")
        let accessSealed = try row.sealed("A stored token of grant \(id)")
        let refreshToken = refreshSealed.map {
            Grant.RefreshToken(
                sealed: $0,
                marks: marks,
                bindingKeyID: bindingKeyID,
                expiresAt: refreshExpiresAt,
                consentedAt: refreshConsentedAt,
                isExpiryNoticed: isExpiryNoticed
            )
        }
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
            connection: connection,
            createdAt: createdAt,
            clientID: clientID,
            owner: owner,
            scope: scope,
            state: state,
            reason: reason.1,
            since: since,
            generation: generation,
            refreshToken: refreshToken,
            accessToken: accessToken,
            dueAt: dueAt,
            failures: failures,
            failingSince: failingSince,
            lastSuccessAt: lastSuccessAt,
            lastAttemptAt: lastAttemptAt,
            isProven: isProven,
            revocationAskedAt: revocationAskedAt,
            suspectedSince: suspectedSince,
            quickRefreshes: quickRefreshes,
            answerLostAt: answerLostAt,
            rotationClaims: rotationClaims(row.optionalBlob() ?? []),
            issuedTokens: IssuedTokens(bytes: row.optionalBlob()),
            labels: ConnectionLabels(stored: row.optionalText()),
            formerTokensUntil: formerTokensUntil,
            lease: lease(&row)
        )
    }

    private mutating func readConnection(_ row: inout some SQLRow) {
        let text = row.text(like: connection.description) ?? ""
        if text != connection.description { connection = ConnectionID(stored: text) }
    }

    private mutating func readState(_ row: inout some SQLRow, of id: GrantID) throws(StoreError) -> GrantState {
        let text = row.text(like: state.0) ?? ""
        if let known = state.1, text == state.0 { return known }
        let read = try GrantState(stored: text, of: id)
        state = (text, read)
        return read
    }

    /// A token whose key is not known would be sent without a proof, so a damaged id is an error.
    private func readBindingKeyID(_ row: inout some SQLRow, of id: GrantID) throws(StoreError) -> KeyID? {
        guard let text = row.optionalText() else { return nil }
        guard let key = KeyID(text) else { throw StoreError(damagedRow: "The binding key of grant \(id)") }
        return key
    }

    private mutating func readReason(_ row: inout some SQLRow) {
        let text = row.text(like: reason.0) ?? ""
        if text != reason.0 { reason = (text, GrantReason(rawValue: text)) }
    }

    /// Eight bytes are one claim.
    private func rotationClaims(_ bytes: [UInt8]) -> [Int64] {
        stride(from: 0, through: bytes.count - 8, by: 8).map { bytes[$0..<$0 + 8].bigEndian }
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

/// The comparisons by which an update omits columns that stay: a new column needs a line in one of them.
extension Grant {
    /// `true` if no column changes that changes seldom: those of all indexes but that of due times, and some others.
    func keepsSeldomChangedColumns(of former: Grant) -> Bool {
        state == former.state
            && clientID == former.clientID
            && owner.googleUserID == former.owner.googleUserID
            && owner.email == former.owner.email
            && refreshToken?.expiresAt == former.refreshToken?.expiresAt
            && refreshToken?.consentedAt == former.refreshToken?.consentedAt
            && refreshToken?.isExpiryNoticed == former.refreshToken?.isExpiryNoticed
            && refreshToken?.bindingKeyID == former.refreshToken?.bindingKeyID
            && refreshToken?.marks == former.refreshToken?.marks
            && refreshToken?.sealed.keyID == former.refreshToken?.sealed.keyID
            && accessToken?.sealed.keyID == former.accessToken?.sealed.keyID
            && suspectedSince == former.suspectedSince
            && quickRefreshes == former.quickRefreshes
            && answerLostAt == former.answerLostAt
            && formerTokensUntil == former.formerTokensUntil
    }

    /// `true` if no other column changes that most refreshes leave as it is, and that is wide.
    func keepsWideColumns(of former: Grant) -> Bool {
        owner == former.owner
            && scope == former.scope
            && refreshToken?.sealed == former.refreshToken?.sealed
            && accessToken?.type == former.accessToken?.type
            && rotationClaims == former.rotationClaims
            && labels == former.labels
    }

    /// `true` if, of the remaining columns, only those change that each refresh changes.
    func keepsOtherColumns(of former: Grant) -> Bool {
        reason == former.reason
            && generation == former.generation
            && since == former.since
            && failures == former.failures
            && failingSince == former.failingSince
            && isProven == former.isProven
            && revocationAskedAt == former.revocationAskedAt
    }

    /// The day of the last refresh, or of the first connection if there was none. Stores find idle grants by it: an
    /// index on the day changes once a day, and not with each refresh.
    var dayOfUse: Int64 { (lastSuccessAt ?? createdAt).day }
}

extension Timestamp {
    /// Whole days between 1970 and this instant, in UTC, negative before 1970.
    var day: Int64 {
        let length: Int64 = 86_400_000
        return milliseconds >= 0 ? milliseconds / length : (milliseconds - length + 1) / length
    }
}

extension Sequence where Element: RawRepresentable<String> {
    /// The codes as they are listed in SQL: quoted, in alphabetical order.
    var sqlList: String { map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ") }
}
