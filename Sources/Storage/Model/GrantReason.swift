package import Base
private import Crypto

/// The reason for a grant's state: a short code that is safe to print.
package struct GrantReason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    /// Takes a code as it is; anything but a lower-case code of at most 64 characters becomes `unknown`.
    package init(rawValue: String) {
        self.rawValue = rawValue.isLowerCaseCode ? rawValue : "unknown"
    }

    private init(_ reason: WorkerReason) {
        rawValue = reason.rawValue
    }

    package var description: String { rawValue }

    /// The reasons that the worker itself gives, as listed in the documents.
    ///
    /// Any other reason is an error code of Google.
    enum WorkerReason: String, CaseIterable, Sendable {
        case invalidGrant = "invalid_grant"
        case answerLost = "answer_lost"
        case invalidGrantUnconfirmed = "invalid_grant_unconfirmed"
        case noRefreshToken = "no_refresh_token"
        case clientMismatch = "client_mismatch"
        case clientMismatchUnconfirmed = "client_mismatch_unconfirmed"
        case accountMismatch = "account_mismatch"
        case accountUnchecked = "account_unchecked"
        case userRequest = "user_request"
        case tokenRevoked = "token_revoked"
        case tokensRevoked = "tokens_revoked"
        case accountDisabled = "account_disabled"
        case userDeleted = "user_deleted"
        case none
    }

    /// Google said that the grant has ended.
    package static let invalidGrant = GrantReason(.invalidGrant)
    /// Google said that the grant has ended, but the answer to an earlier request was lost, which may have brought
    /// another token.
    package static let answerLost = GrantReason(.answerLost)
    /// The reasons of grants that an `invalid_grant` has ended.
    static let endedByAnswer: Set<GrantReason> = [.invalidGrant, .answerLost]
    /// Google said so while the refusal is in doubt: another refresh must confirm it.
    package static let invalidGrantUnconfirmed = GrantReason(.invalidGrantUnconfirmed)
    /// The access token expired, and the grant does not have a refresh token to get another.
    package static let noRefreshToken = GrantReason(.noRefreshToken)
    /// The refresh token belongs to another client.
    package static let clientMismatch = GrantReason(.clientMismatch)
    /// The refresh token seems to belong to another client: another refusal must confirm it.
    package static let clientMismatchUnconfirmed = GrantReason(.clientMismatchUnconfirmed)
    /// The refresh token belongs to another Google account than the access token that came with it.
    package static let accountMismatch = GrantReason(.accountMismatch)
    /// Google did not say which account a new refresh token belongs to.
    package static let accountUnchecked = GrantReason(.accountUnchecked)
    /// The user, or an operator for the user, ended it.
    package static let userRequest = GrantReason(.userRequest)
    /// A security event said that this refresh token is revoked.
    package static let tokenRevoked = GrantReason(.tokenRevoked)
    /// A security event said that all of the user's tokens are revoked.
    package static let tokensRevoked = GrantReason(.tokensRevoked)
    /// A security event said that the account is disabled.
    package static let accountDisabled = GrantReason(.accountDisabled)
    /// The user was deleted.
    package static let userDeleted = GrantReason(.userDeleted)
    /// The reasons of grants that wait for a confirmation, which must not come early.
    package static let awaitingConfirmation: Set<GrantReason> = [.invalidGrantUnconfirmed, .clientMismatchUnconfirmed]
    /// No reason.
    package static let none = GrantReason(.none)
}

/// One event of a grant's history.
package struct GrantEvent: Hashable, Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        /// The app or an import brought tokens.
        case connected
        /// The state changed.
        case state
        /// Another refresh token replaced the stored one.
        case rotated
        /// The granted scopes differ from those of the previous answer.
        case scopeChanged = "scope_changed"
    }

    package var grant: GrantID
    package var at: Timestamp
    package var kind: Kind
    package var from: GrantState?
    package var to: GrantState
    package var reason: GrantReason
    package var generation: Int64

    package init(
        grant: GrantID,
        at: Timestamp,
        kind: Kind,
        from: GrantState?,
        to: GrantState,
        reason: GrantReason,
        generation: Int64
    ) {
        self.grant = grant
        self.at = at
        self.kind = kind
        self.from = from
        self.to = to
        self.reason = reason
        self.generation = generation
    }

    init(of grant: Grant, kind: Kind, from: GrantState?, at now: Timestamp) {
        self.init(
            grant: grant.id,
            at: now,
            kind: kind,
            from: from,
            to: grant.state,
            reason: grant.reason,
            generation: grant.generation
        )
    }
}

/// Ends a grant at a user's request, and decides if Google is notified.
package enum GrantEnding {
    /// The result of ending a grant.
    package struct Outcome: Hashable, Sendable {
        /// The grant as it is stored now.
        package let grant: Grant
        /// `true` if a revocation would end another stored grant too, so Google is not notified.
        package let isShared: Bool
    }

    /// Stores the end of a grant, and its events.
    ///
    /// A revocation ends every grant of the account with any client of the same project
    /// (https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke).
    package static func end(
        _ stored: Grant,
        reason: GrantReason,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Outcome {
        let isShared = try isShared(stored, in: transaction)
        var grant = stored
        let events = grant.disconnectByRequest(revokes: !isShared, reason: reason, at: now)
        try transaction.rememberRefreshToken(of: stored, at: now)
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return Outcome(grant: grant, isShared: isShared)
    }

    /// Returns `true` if a claimed revocation can be sent: the grant has not been connected again, and no other grant
    /// would end with it.
    ///
    /// It is checked before each attempt, because the account can have been connected since the first one. A revocation
    /// that would end another grant is over.
    package static func mayRevoke(_ id: GrantID, in transaction: any StoreTransaction) throws -> Bool {
        guard var grant = try transaction.grant(id), grant.revocationAskedAt != nil else { return false }
        guard try isShared(grant, in: transaction) else { return true }
        grant.finishRevocation()
        try transaction.update(grant)
        return false
    }

    /// Makes the grants due that a revocation of this one has ended at Google: those of the same account that were
    /// connected while it was in flight.
    package static func probeGrants(
        endedWith grant: Grant,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        for var other in try grants(endedWith: grant, in: transaction) {
            other.probeNow(at: now)
            try transaction.update(other)
        }
    }

    private static func isShared(_ grant: Grant, in transaction: any StoreTransaction) throws -> Bool {
        try !grants(endedWith: grant, in: transaction).isEmpty
    }

    /// Returns the other grants that a revocation would end although they are not to be revoked.
    private static func grants(endedWith grant: Grant, in transaction: any StoreTransaction) throws -> [Grant] {
        try transaction.grants(sharingAccountWith: grant).filter { other in
            other.revocationAskedAt == nil && !other.hasTokenOfAnotherAccount
                && ClientProject.same(other.clientID, grant.clientID)
        }
    }
}

extension StoreTransaction {
    /// Remembers the refresh token that the user is about to end or to replace, so that no import brings it back.
    ///
    /// Its date does not tell: a former backend that refreshes its own copy writes a newer one. It lives on at Google
    /// if another user has the same account.
    package func rememberRefreshToken(of grant: Grant, at now: Timestamp) throws {
        guard let identifier = Self.identifier(of: grant.refreshToken, in: grant.id) else { return }
        _ = try record(securityEvent: identifier, at: now)
    }

    /// `true` if the user of the grant has ended or replaced this refresh token here.
    package func hasLeft(_ token: Grant.RefreshToken?, of grant: Grant) throws -> Bool {
        guard let identifier = Self.identifier(of: token, in: grant.id) else { return false }
        return try hasRecorded(securityEvent: identifier)
    }

    private static func identifier(of token: Grant.RefreshToken?, in grant: GrantID) -> String? {
        token?.marks.map { "left-refresh-token:\(grant):\(Hexadecimal.encode($0.digest.bytes))" }
    }
}

/// The limits of stored data: how long, or how much of it, a store keeps.
package enum Retention {
    /// Google repeats a security event for days; its identifier is kept for two months.
    package static let securityEvents: Duration = .seconds(60 * 86_400)
    /// The number of events that are kept for one grant, in addition to its last connection.
    ///
    /// A server that rotates adds an event for each refresh, which is 24 a day. The statement that adds an event
    /// removes what it pushes out, so no sweep is needed.
    package static let eventsPerGrant = 100
    /// Notices that were accepted or given up are kept for a replay.
    static let notices: Duration = .seconds(7 * 86_400)
}
