package import Base

/// The change that an app or an import makes to an existing grant, decided from the data stored at one time.
package struct Reconnection: Sendable {
    package let stored: Grant
    package let incoming: IncomingTokens
    package let replacesRefreshToken: Bool
    /// `true` if the stored tokens and their owner must all be replaced.
    package let discardsStored: Bool

    package init(stored: Grant, incoming: IncomingTokens, replacesRefreshToken: Bool, discardsStored: Bool) {
        self.stored = stored
        self.incoming = incoming
        self.replacesRefreshToken = replacesRefreshToken
        self.discardsStored = discardsStored
    }

    /// `true` if the decisions still hold for the stored grant: they depend on its refresh token, its client and its
    /// owner.
    package func isBased(on grant: Grant) -> Bool {
        guard grant.id == stored.id, grant.generation == stored.generation else { return false }
        guard grant.owner == stored.owner, grant.clientID == stored.clientID else { return false }
        return grant.refreshToken?.sealed == stored.refreshToken?.sealed
    }

    /// Applies the change and returns the events for the history. The due time depends on the tokens after the change,
    /// which ``Grant/reconnect`` chooses.
    package func apply(to grant: inout Grant, at now: Timestamp, due: (Grant) -> Timestamp) -> [GrantEvent] {
        var preview = grant
        _ = reconnect(&preview, dueAt: nil, at: now)
        return reconnect(&grant, dueAt: due(preview), at: now)
    }

    private func reconnect(_ grant: inout Grant, dueAt: Timestamp?, at now: Timestamp) -> [GrantEvent] {
        grant.reconnect(
            incoming,
            replacesRefreshToken: replacesRefreshToken,
            discardsStored: discardsStored,
            dueAt: dueAt,
            at: now
        )
    }
}

extension Grant.Owner {
    /// `true` if both are known to be the same account at Google: by their ids if both are known, else by the e-mails
    /// without regard to case.
    package func isSameAccount(as other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID == otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.lowercased() == otherEmail.lowercased()
    }

    /// `true` if both are known to be different accounts at Google. The ids decide if both are known, else the e-mails
    /// without regard to case. An unknown value does not count as a difference.
    package func isOtherAccount(than other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID != otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.lowercased() != otherEmail.lowercased()
    }
}
