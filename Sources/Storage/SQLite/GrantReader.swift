import Base
import Crypto

/// Reads rows of grants, in the order of ``GrantRow/columns``.
///
/// It does the same as `Grant.read`, which is generic and costs three times as many instructions, because the compiler
/// does not specialise it for another module. A text that is the same in row after row is built once.
struct GrantReader {
    private var clientID = ""
    private var scope = ""
    private var state = ("", GrantState?.none)
    private var reason = ("", GrantReason.none)
    private var accessType = ""

    mutating func read(_ row: inout SQLiteRow) throws(StoreError) -> Grant {
        let id = GrantID(rawValue: row.integer())
        let userID = row.text()
        let createdAt = Timestamp(milliseconds: row.integer())
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
        let type = row.text(like: accessType)
        if let type { accessType = type }
        let marks = TokenMarks(prefix: row.optionalBlob(), digest: row.optionalBlob())
        let refreshSealed = try sealed(&row, of: id)
        let accessSealed = try sealed(&row, of: id)
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

    private mutating func readState(_ row: inout SQLiteRow, of id: GrantID) throws(StoreError) -> GrantState {
        let text = row.text(like: state.0) ?? ""
        if let known = state.1, text == state.0 { return known }
        let read = try SQLiteGrantRow.state(text, of: id)
        state = (text, read)
        return read
    }

    private mutating func readReason(_ row: inout SQLiteRow) {
        let text = row.text(like: reason.0) ?? ""
        if text != reason.0 { reason = (text, GrantReason(rawValue: text)) }
    }

    private func sealed(_ row: inout SQLiteRow, of id: GrantID) throws(StoreError) -> SealedSecret? {
        guard let bytes = row.optionalBlob() else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw row.damage("A stored token of grant \(id)")
        }
    }

    private func lease(_ row: inout SQLiteRow) -> Lease? {
        guard let owner = row.optionalText() else {
            row.skip(3)
            return nil
        }
        let claim = row.integer()
        let epoch = row.text()
        return Lease(owner: owner, claim: claim, epoch: epoch, until: BootInstant(milliseconds: row.integer()))
    }
}
