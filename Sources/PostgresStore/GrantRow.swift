import Clocks
import Secrets
import Store

/// The columns of a grant in `grants` and `grant_schedule`.
enum GrantRow {
    typealias Column = Table<Grant>.Column

    /// The two rows of a grant, as a source of ``columns``.
    static let source =
        "refresh_worker.grants AS g JOIN refresh_worker.grant_schedule AS s ON s.grant_id = g.id"

    private static let key = Column("id", .integer { $0.id.rawValue })
    private static let fixed = [
        Column("user_id", .text { $0.userID }),
        Column("created_at", .integer { $0.createdAt.milliseconds }),
    ]
    /// The columns that seldom change: the statement for a refresh omits them.
    private static let lasting = [
        Column("client_id", .text { $0.clientID }),
        Column("google_user_id", .text { $0.owner.googleUserID }),
        Column("email", .text { $0.owner.email }),
        Column("name", .text { $0.owner.name }),
        Column("email_is_verified", .flag { $0.owner.emailIsVerified }),
        Column("scope", .text { $0.scope }),
        Column("state", .text { $0.state.rawValue }),
        Column("refresh_expires_at", .integer { $0.refreshToken?.expiresAt?.milliseconds }),
        Column("refresh_key", .text { $0.refreshToken?.sealed.keyID.description }),
        Column("refresh_prefix_mark", .bytes { $0.refreshToken?.marks?.prefix.bytes }),
        Column("refresh_digest_mark", .bytes { $0.refreshToken?.marks?.digest.bytes }),
        Column("access_key", .text { $0.accessToken?.sealed.keyID.description }),
        Column("access_type", .text { $0.accessToken?.type }),
        Column("refresh_token", .bytes { $0.refreshToken?.sealed.bytes }),
        Column("suspected_since", .integer { $0.suspectedSince?.milliseconds }),
        Column("quick_refreshes", .integer { Int64($0.quickRefreshes) }),
        Column("answer_lost_at", .integer { $0.answerLostAt?.milliseconds }),
        Column("rotation_claims", .bytes { $0.rotationClaims.bytes }),
        Column("former_tokens_until", .integer { $0.formerTokensUntil?.milliseconds }),
    ]
    private static let moving = [
        Column("reason", .text { $0.reason.rawValue }),
        Column("since", .integer { $0.since.milliseconds }),
        Column("generation", .integer { $0.generation }),
        Column("attempts", .integer { Int64($0.attempts) }),
        Column("failing_since", .integer { $0.failingSince?.milliseconds }),
        Column("last_success_at", .integer { $0.lastSuccessAt?.milliseconds }),
        Column("last_attempt_at", .integer { $0.lastAttemptAt?.milliseconds }),
        Column("is_proven", .flag { $0.isProven }),
        Column("revocation_asked_at", .integer { $0.revocationAskedAt?.milliseconds }),
        Column("access_obtained_at", .integer { $0.accessToken?.obtainedAt.milliseconds }),
        Column("access_expires_at", .integer { $0.accessToken?.expiresAt.milliseconds }),
        Column("access_token", .bytes { $0.accessToken?.sealed.bytes }),
        Column("issued_tokens", .bytes { $0.issuedTokens.bytes }),
    ]
    private static let use = Column("used_on", .integer { $0.dayOfUse })
    static let schedule = [
        Column("grant_id", .integer { $0.id.rawValue }),
        Column("client_id", .text { $0.clientID }),
        Column("due_at", .integer { $0.dueAt?.milliseconds }),
        Column("lease_owner", .text { $0.lease?.owner }),
        Column("lease_claim", .integer { $0.lease?.claim }),
        Column("lease_epoch", .text { $0.lease?.epoch }),
        Column("lease_until", .integer { $0.lease?.until.milliseconds }),
    ]

    static let columns =
        ([key] + fixed + lasting + moving).map { "g.\($0.name)" }.joined(separator: ", ") + ", "
        + schedule.dropFirst(2).map { "s.\($0.name)" }.joined(separator: ", ")

    static let allOfGrant = [key] + fixed + lasting + moving + [use]
    private static let changing = [key] + lasting + moving + [use]
    private static let refreshed = [key] + moving + [use]

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

    static func addInsert(_ grant: Grant, to batch: inout Batch) -> Int {
        batch.add(insertGrant) { Table.bind([grant], allOfGrant, to: &$0) }
    }

    static func addScheduleInsert(_ grant: Grant, to batch: inout Batch) {
        batch.add(insertSchedule) { Table.bind([grant], schedule, to: &$0) }
    }

    /// Adds the statements that store `whole` and `refreshed`; grants in the latter have not changed in any lasting
    /// column.
    static func addUpdates(whole: [Grant], refreshed: [Grant], to batch: inout Batch) {
        if !whole.isEmpty { batch.add(updateWhole) { Table.bind(whole, changing, to: &$0) } }
        if !refreshed.isEmpty { batch.add(updateRefreshed) { Table.bind(refreshed, self.refreshed, to: &$0) } }
        let all = whole + refreshed
        if !all.isEmpty { batch.add(updateSchedule) { Table.bind(all, schedule, to: &$0) } }
    }

    /// `true` if an update from `former` to `grant` leaves all columns of `lasting` as they are.
    static func keepsLasting(_ grant: Grant, from former: Grant) -> Bool {
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

    static func read(_ row: inout Row) throws(Failure) -> Grant {
        let id = GrantID(rawValue: row.integer())
        let userID = row.text()
        let createdAt = Timestamp(milliseconds: row.integer())

        let clientID = row.text()
        let googleUserID = row.optionalText()
        let email = row.optionalText()
        let name = row.optionalText()
        let emailIsVerified = row.optionalFlag()
        let scope = row.text()
        let state = try state(row.text(), of: id)
        let refreshExpiresAt = row.timestamp()
        // The columns of key ids exist to be counted: a sealed token contains its key id.
        row.skip()
        let marks = TokenMarks(prefix: row.optionalBlob(), digest: row.optionalBlob())
        row.skip()
        let accessType = row.optionalText()
        let refreshSealed = try sealed(row.optionalBlob(), of: id)
        let suspectedSince = row.timestamp()
        let quickRefreshes = Int(row.integer())
        let answerLostAt = row.timestamp()
        let rotationClaims = RotationClaims(bytes: row.optionalBlob())
        let formerTokensUntil = row.timestamp()

        let reason = GrantReason(rawValue: row.text())
        let since = Timestamp(milliseconds: row.integer())
        let generation = row.integer()
        let attempts = Int(row.integer())
        let failingSince = row.timestamp()
        let lastSuccessAt = row.timestamp()
        let lastAttemptAt = row.timestamp()
        let isProven = row.flag()
        let revocationAskedAt = row.timestamp()
        let accessObtainedAt = row.timestamp()
        let accessExpiresAt = row.timestamp()
        let accessSealed = try sealed(row.optionalBlob(), of: id)
        let issuedTokens = IssuedTokens(bytes: row.optionalBlob())

        let dueAt = row.timestamp()
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

    private static func lease(_ row: inout Row) -> Lease? {
        let owner = row.optionalText()
        let claim = row.optionalInteger()
        let epoch = row.optionalText()
        let until = row.optionalInteger()
        guard let owner, let claim, let epoch, let until else { return nil }
        return Lease(owner: owner, claim: claim, epoch: epoch, until: BootInstant(milliseconds: until))
    }

    private static func sealed(_ bytes: [UInt8]?, of id: GrantID) throws(Failure) -> SealedSecret? {
        guard let bytes else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw damaged("A stored token", of: id)
        }
    }

    static func state(_ text: String, of id: GrantID) throws(Failure) -> GrantState {
        guard let state = GrantState(rawValue: text) else { throw damaged("The state", of: id) }
        return state
    }

    private static func damaged(_ what: String, of id: GrantID) -> Failure {
        Failure(StoreError(damagedRow: "\(what) of grant \(id)"))
    }
}
