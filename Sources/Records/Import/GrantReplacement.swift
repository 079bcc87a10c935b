internal import Base
internal import Storage

/// The replacement of a stored grant, with the state that it had at its origin.
struct GrantReplacement: Sendable {
    let reconnection: Reconnection
    let imported: ImportedGrant
    let refreshesAtOnce: Bool

    /// `true` if the user ended the stored grant and the replacement would connect it again without a new refresh
    /// token.
    ///
    /// The stored refresh token of such a grant might be about to be revoked.
    var revivesEndedGrant: Bool {
        guard reconnection.stored.wasEndedByUser, imported.recordedState?.state.endsRefreshes != true else {
            return false
        }
        return reconnection.incoming.refreshToken == nil || !reconnection.replacesRefreshToken
    }

    /// Replaces the content and returns the events for the history.
    func apply(to grant: inout Grant, at now: Timestamp) -> [GrantEvent] {
        var events = reconnection.apply(to: &grant, at: now) { grant in
            imported.firstDueTime(
                grant.accessToken,
                hasRefreshToken: grant.refreshToken != nil,
                id: grant.id,
                refreshesAtOnce: refreshesAtOnce,
                at: now
            )
        }
        guard let recordedState = imported.recordedState else { return events }
        if recordedState.state.endsRefreshes {
            // These calls advance the generation, so that a late answer does not bring the grant back.
            if recordedState.deletesTokens {
                _ = grant.disconnectByRequest(revokes: false, at: now)
            } else {
                _ = grant.disconnect(reason: recordedState.reason, at: now)
            }
        }
        grant.restore(recordedState, in: &events, at: now)
        return events
    }
}

extension ImportedGrant.RecordedState {
    /// `true` if the user asked to end the grant.
    ///
    /// Its tokens are not kept then.
    var deletesTokens: Bool { state == .disconnected && reason == .userRequest }
}

extension Grant {
    /// Sets the state that the grant had at its origin, and writes that state into the events of its import.
    mutating func restore(
        _ recordedState: ImportedGrant.RecordedState,
        in events: inout [GrantEvent],
        at now: Timestamp
    ) {
        restore(state: recordedState.state, reason: recordedState.reason, since: recordedState.since ?? now)
        for position in events.indices {
            events[position].to = state
            events[position].reason = reason
            events[position].generation = generation
        }
    }
}
