package import Clocks
package import Secrets

/// What an app or an import brings for a grant that is stored already, decided by what was stored at one moment.
package struct Reconnection: Sendable {
    package let stored: Grant
    package let handover: Handover
    package let bringsOtherRefreshToken: Bool
    /// Whether nothing of the stored tokens and their owner may stay.
    package let switchesAccount: Bool

    package init(stored: Grant, handover: Handover, bringsOtherRefreshToken: Bool, switchesAccount: Bool) {
        self.stored = stored
        self.handover = handover
        self.bringsOtherRefreshToken = bringsOtherRefreshToken
        self.switchesAccount = switchesAccount
    }

    /// Whether the decisions still hold for what is stored now: they hang on its refresh token, its client and its owner.
    package func isBased(on grant: Grant) -> Bool {
        grant.id == stored.id && grant.generation == stored.generation && grant.owner == stored.owner
            && grant.clientID == stored.clientID && grant.refreshToken?.sealed == stored.refreshToken?.sealed
    }

    /// Puts what is brought in place and answers what belongs in the history.
    ///
    /// When the grant is due hangs on the tokens that are there afterwards, which ``Grant/reconnect`` chooses.
    package func apply(to grant: inout Grant, at now: Timestamp, due: (Grant) -> Timestamp) -> [GrantEvent] {
        var preview = grant
        _ = reconnect(&preview, dueAt: nil, at: now)
        return reconnect(&grant, dueAt: due(preview), at: now)
    }

    private func reconnect(_ grant: inout Grant, dueAt: Timestamp?, at now: Timestamp) -> [GrantEvent] {
        grant.reconnect(
            handover,
            bringsOtherRefreshToken: bringsOtherRefreshToken,
            switchesAccount: switchesAccount,
            dueAt: dueAt,
            at: now
        )
    }
}

extension TokenVault {
    /// Whether a refresh token that is brought is not the one that is stored, for the same client.
    package func isOther(refreshToken brought: Secret?, ofClient clientID: String, than stored: Grant) -> Bool {
        guard let brought else { return false }
        guard stored.clientID == clientID else { return true }
        switch Result(catching: { () throws(SealError) in try openRefreshToken(of: stored) }) {
        case .success(let known): return known != brought
        // One that no key opens is of no use to anybody: the brought one takes its place.
        case .failure: return true
        }
    }
}

extension Grant.Owner {
    /// Whether both are known to be different accounts at Google.
    ///
    /// The ids decide where both are known, else the e-mails without regard to case; what is unknown is no difference.
    package func isOtherAccount(than other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID != otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.lowercased() != otherEmail.lowercased()
    }
}
