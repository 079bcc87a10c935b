import Clocks
import Secrets
import Store

/// A grant's row in `grants`, and its lease's row in `leases`: the order of columns, reading and binding are kept
/// together here.
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
    }

    /// Columns of no index but `grants_due`: every update writes them.
    private static let plain = [
        "name", "email_is_verified", "scope", "reason", "since", "generation", "due_at", "attempts", "failing_since",
        "last_success_at", "last_attempt_at", "is_proven", "revocation_asked_at", "access_obtained_at",
        "access_expires_at", "access_type", "refresh_token", "access_token", "rotation_claims", "issued_tokens",
    ]
    /// The column of `grants_by_use`, which changes once a day.
    private static let daily = ["used_on"]
    /// Columns of the other indexes, and columns that seldom change: written only if one of them changes.
    private static let indexed = [
        "client_id", "google_user_id", "email", "state", "refresh_expires_at", "refresh_key", "access_key",
        "refresh_prefix_mark", "refresh_digest_mark", "suspected_since", "quick_refreshes", "answer_lost_at",
        "former_tokens_until",
    ]
    private static let fixed = ["id", "user_id", "created_at"]
    private static let lease = ["owner", "claim", "epoch", "until"]

    /// The columns that ``read(_:)`` expects from ``source``.
    static let columns = (fixed + indexed + daily + plain + lease).joined(separator: ", ")
    static let source = "grants LEFT JOIN \(LeaseFile.schema).leases ON grant_id = id"

    static let insert: Query = {
        let columns = fixed + indexed + daily + plain
        let places = columns.map { _ in "?" }.joined(separator: ", ")
        return Query("insert grant", "INSERT INTO grants (\(columns.joined(separator: ", "))) VALUES (\(places))")
    }()
    private static let updatePlain = update("update grant", setting: plain)
    private static let updateDaily = update("update grant and its day", setting: daily + plain)
    private static let updateAll = update("update whole grant", setting: indexed + daily + plain)

    private static func update(_ name: String, setting columns: [String]) -> Query {
        let list = columns.map { "\($0) = ?" }.joined(separator: ", ")
        return Query(name, "UPDATE grants SET \(list) WHERE id = ?")
    }

    static func read(_ row: inout Row) throws(StoreError) -> Grant {
        let id = GrantID(rawValue: row.integer())
        let userID = row.text()
        let createdAt = Timestamp(milliseconds: row.integer())

        let clientID = row.text()
        let googleUserID = row.optionalText()
        let email = row.optionalText()
        let state = try state(row.text(), of: id)
        let refreshExpiresAt = row.timestamp()
        // The columns of key ids exist for the index: a sealed token contains its key id.
        _ = row.optionalText()
        _ = row.optionalText()
        let marks = TokenMarks(prefix: row.optionalBlob(), digest: row.optionalBlob())
        let suspectedSince = row.timestamp()
        let quickRefreshes = Int(row.integer())
        let answerLostAt = row.timestamp()
        let formerTokensUntil = row.timestamp()
        // The day of use follows from the times below.
        _ = row.optionalInteger()

        let name = row.optionalText()
        let emailIsVerified = row.optionalInteger().map { $0 != 0 }
        let scope = row.text()
        let reason = GrantReason(rawValue: row.text())
        let since = Timestamp(milliseconds: row.integer())
        let generation = row.integer()
        let dueAt = row.timestamp()
        let attempts = Int(row.integer())
        let failingSince = row.timestamp()
        let lastSuccessAt = row.timestamp()
        let lastAttemptAt = row.timestamp()
        let isProven = row.integer() != 0
        let revocationAskedAt = row.timestamp()
        let accessObtainedAt = row.timestamp()
        let accessExpiresAt = row.timestamp()
        let accessType = row.optionalText()
        let refreshSealed = try sealed(row.optionalBlob(), of: id)
        let accessSealed = try sealed(row.optionalBlob(), of: id)
        let rotationClaims = RotationClaims(bytes: row.optionalBlob())
        let issuedTokens = IssuedTokens(bytes: row.optionalBlob())
        let lease = lease(&row)

        var accessToken: Grant.AccessToken?
        if let accessSealed, let accessObtainedAt, let accessExpiresAt, let accessType {
            accessToken = Grant.AccessToken(
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
            owner: Grant.Owner(googleUserID: googleUserID, email: email, name: name, emailIsVerified: emailIsVerified),
            scope: scope,
            state: state,
            reason: reason,
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
            rotationClaims: rotationClaims,
            issuedTokens: issuedTokens,
            formerTokensUntil: formerTokensUntil,
            lease: lease
        )
    }

    static func bindInsert(_ grant: Grant, to statement: Statement) {
        statement.bind(grant.id.rawValue)
        statement.bind(grant.userID)
        statement.bind(grant.createdAt)
        bindIndexed(grant, to: statement)
        statement.bind(grant.dayOfUse)
        bindPlain(grant, to: statement)
    }

    static func bindUpdate(_ grant: Grant, extent: Extent, to statement: Statement) {
        if case .all = extent { bindIndexed(grant, to: statement) }
        switch extent {
        case .plain: break
        case .daily, .all: statement.bind(grant.dayOfUse)
        }
        bindPlain(grant, to: statement)
        statement.bind(grant.id.rawValue)
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

    private static func bindIndexed(_ grant: Grant, to statement: Statement) {
        statement.bind(grant.clientID)
        statement.bind(grant.owner.googleUserID)
        statement.bind(grant.owner.email)
        statement.bind(grant.state.rawValue)
        statement.bind(grant.refreshToken?.expiresAt)
        statement.bind(grant.refreshToken?.sealed.keyID.description)
        statement.bind(grant.accessToken?.sealed.keyID.description)
        statement.bind(grant.refreshToken?.marks?.prefix.bytes)
        statement.bind(grant.refreshToken?.marks?.digest.bytes)
        statement.bind(grant.suspectedSince)
        statement.bind(Int64(grant.quickRefreshes))
        statement.bind(grant.answerLostAt)
        statement.bind(grant.formerTokensUntil)
    }

    private static func bindPlain(_ grant: Grant, to statement: Statement) {
        statement.bind(grant.owner.name)
        statement.bind(grant.owner.emailIsVerified)
        statement.bind(grant.scope)
        statement.bind(grant.reason.rawValue)
        statement.bind(grant.since)
        statement.bind(grant.generation)
        statement.bind(grant.dueAt)
        statement.bind(Int64(grant.attempts))
        statement.bind(grant.failingSince)
        statement.bind(grant.lastSuccessAt)
        statement.bind(grant.lastAttemptAt)
        statement.bind(grant.isProven)
        statement.bind(grant.revocationAskedAt)
        statement.bind(grant.accessToken?.obtainedAt)
        statement.bind(grant.accessToken?.expiresAt)
        statement.bind(grant.accessToken?.type)
        statement.bind(grant.refreshToken?.sealed.bytes)
        statement.bind(grant.accessToken?.sealed.bytes)
        statement.bind(grant.rotationClaims.bytes)
        statement.bind(grant.issuedTokens.bytes)
    }

    private static func lease(_ row: inout Row) -> Lease? {
        let owner = row.optionalText()
        let claim = row.optionalInteger()
        let epoch = row.optionalText()
        let until = row.optionalInteger()
        guard let owner, let claim, let epoch, let until else { return nil }
        return Lease(owner: owner, claim: claim, epoch: epoch, until: BootInstant(milliseconds: until))
    }

    private static func sealed(_ bytes: [UInt8]?, of id: GrantID) throws(StoreError) -> SealedSecret? {
        guard let bytes else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw damaged("A stored token", of: id)
        }
    }

    static func state(_ text: String, of id: GrantID) throws(StoreError) -> GrantState {
        guard let state = GrantState(rawValue: text) else { throw damaged("The state", of: id) }
        return state
    }

    private static func damaged(_ what: String, of id: GrantID) -> StoreError {
        StoreError(damagedRow: "\(what) of grant \(id)")
    }
}

extension Row {
    mutating func timestamp() -> Timestamp? {
        optionalInteger().map { Timestamp(milliseconds: $0) }
    }
}

extension Statement {
    func bind(_ value: Timestamp?) {
        bind(value?.milliseconds)
    }
}
