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
