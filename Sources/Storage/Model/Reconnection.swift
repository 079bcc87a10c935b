package import Base

/// The change that an app or an import makes to an existing grant, decided from the data stored at one time.
package struct Reconnection: Sendable {
    package let stored: Grant
    package let incoming: IncomingTokens
    package let replacesRefreshToken: Bool
    /// `true` if the stored tokens and their owner must all be replaced.
    package let switchesAccount: Bool

    package init(stored: Grant, incoming: IncomingTokens, replacesRefreshToken: Bool, switchesAccount: Bool) {
        self.stored = stored
        self.incoming = incoming
        self.replacesRefreshToken = replacesRefreshToken
        self.switchesAccount = switchesAccount
    }

    /// `true` if the decisions still hold for the stored grant: they depend on its refresh token, its client and its
    /// owner.
    package func isBased(on grant: Grant) -> Bool {
        grant.id == stored.id && grant.generation == stored.generation && grant.owner == stored.owner
            && grant.clientID == stored.clientID && grant.refreshToken?.sealed == stored.refreshToken?.sealed
    }

    /// Applies the change and returns the events for the history.
    ///
    /// The due time depends on the tokens after the change, which ``Grant/reconnect`` chooses.
    package func apply(to grant: inout Grant, at now: Timestamp, due: (Grant) -> Timestamp) -> [GrantEvent] {
        var preview = grant
        _ = reconnect(&preview, dueAt: nil, at: now)
        return reconnect(&grant, dueAt: due(preview), at: now)
    }

    private func reconnect(_ grant: inout Grant, dueAt: Timestamp?, at now: Timestamp) -> [GrantEvent] {
        grant.reconnect(
            incoming,
            replacesRefreshToken: replacesRefreshToken,
            switchesAccount: switchesAccount,
            dueAt: dueAt,
            at: now
        )
    }
}

extension Grant.Owner {
    /// `true` if both are known to be different accounts at Google.
    ///
    /// The ids decide if both are known, else the e-mails without regard to case. An unknown value does not count as a
    /// difference.
    package func isOtherAccount(than other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID != otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.lowercased() != otherEmail.lowercased()
    }
}

/// The tokens and data that an app or an import brings for one user, already sealed for the grant's id.
package struct IncomingTokens: Hashable, Sendable {
    var clientID: String
    package var owner: Grant.Owner
    package var scope: String?
    package var refreshToken: Grant.RefreshToken?
    package var accessToken: Grant.AccessToken?
    /// The digest of the access token if this program got it from Google, so that it is no proof of who signs in.
    package var issuedDigest: [UInt8]?

    package init(
        clientID: String,
        owner: Grant.Owner = Grant.Owner(),
        scope: String? = nil,
        refreshToken: Grant.RefreshToken? = nil,
        accessToken: Grant.AccessToken? = nil
    ) {
        self.clientID = clientID
        self.owner = owner
        self.scope = scope
        self.refreshToken = refreshToken
        self.accessToken = accessToken
    }
}

/// The sealed tokens of a successful refresh.
package struct RefreshedTokens: Hashable, Sendable {
    package var accessToken: Grant.AccessToken
    /// The refresh token that replaces the stored one, if the server rotates.
    package var rotated: Grant.RefreshToken?
    package var scope: String?
    /// The end of the refresh token's own lifetime, if the answer gives it.
    package var refreshTokenExpiresAt: Timestamp?
    /// The digest by which ``IssuedTokens`` recognises the access token.
    package var digest: [UInt8]?

    package init(
        accessToken: Grant.AccessToken,
        rotated: Grant.RefreshToken? = nil,
        scope: String? = nil,
        refreshTokenExpiresAt: Timestamp? = nil,
        digest: [UInt8]? = nil
    ) {
        self.accessToken = accessToken
        self.rotated = rotated
        self.scope = scope
        self.refreshTokenExpiresAt = refreshTokenExpiresAt
        self.digest = digest
    }
}

/// The result of making a grant due now on an operator's request, except where an early refresh would do harm.
package enum GrantRetry: String, CaseIterable, Sendable {
    /// The grant is due now.
    case due
    /// A worker holds the grant's lease: it is being refreshed.
    case inFlight = "in_flight"
    /// A refusal of the grant waits for its confirmation, which must not come early.
    case awaitingConfirmation = "awaiting_confirmation"
    /// A security event disabled the account, and the operator named neither the state nor the user.
    case accountDisabled = "account_disabled"
    /// There is no refresh token to try.
    case noRefreshToken = "no_refresh_token"
    /// The user must sign in again.
    case ended

    /// Makes the grant due now if that does no harm, within the caller's transaction.
    ///
    /// `includesDisabledAccounts` is `true` if the operator named the user, or the state `suspended`.
    package static func retry(
        _ grant: Grant,
        includesDisabledAccounts: Bool,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> GrantRetry {
        let outcome = outcome(for: grant, includesDisabledAccounts: includesDisabledAccounts, at: transaction.leaseTime)
        guard outcome == .due else { return outcome }
        var grant = grant
        if let dueAt = grant.dueAt { grant.reschedule(to: min(dueAt, now)) }
        try transaction.update(grant)
        return .due
    }

    /// Makes the grant of a user due now, or returns `nil` if there is none.
    package static func retry(
        grantOfUser user: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> (grant: Grant, result: GrantRetry)? {
        guard let grant = try transaction.grant(ofUser: user) else { return nil }
        return (grant, try retry(grant, includesDisabledAccounts: true, in: transaction, at: now))
    }

    /// Returns the result for a grant as it is stored.
    static func outcome(for grant: Grant, includesDisabledAccounts: Bool, at leaseTime: LeaseTime) -> GrantRetry {
        if grant.state.endsRefreshes { return .ended }
        if grant.lease?.isLive(at: leaseTime) ?? false { return .inFlight }
        if grant.refreshToken == nil { return .noRefreshToken }
        if grant.isInDoubt { return .awaitingConfirmation }
        if grant.reason == .accountDisabled && !includesDisabledAccounts { return .accountDisabled }
        return .due
    }
}

extension Grant {
    /// `true` if a refusal is in doubt: a refresh at the due time is its confirmation.
    package var isInDoubt: Bool {
        GrantReason.inDoubt.contains(reason) || state == .suspended && suspectedSince != nil
    }
}

/// The result of moving a grant to another client id on an operator's request: it was stored for the wrong one.
package enum ClientChange: Hashable, Sendable {
    case moved
    /// The grant was refused as if it belonged to another client id. It is tried again now.
    case movedAndDue
    /// A worker holds the grant's lease: its request names the former client id.
    case inFlight

    package static func move(
        _ grant: Grant,
        to clientID: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> ClientChange {
        if grant.lease?.isLive(at: transaction.leaseTime) ?? false { return .inFlight }
        var changed = grant
        let events = changed.changeClient(to: clientID, at: now)
        try transaction.update(changed)
        for event in events { try transaction.record(event) }
        return grant.mayBelongToAnotherClient && changed.dueAt == now ? .movedAndDue : .moved
    }
}

extension Grant {
    /// `true` if the refresh token was refused as one of another client id.
    var mayBelongToAnotherClient: Bool { [.clientMismatch, .clientMismatchUnconfirmed].contains(reason) }
}
