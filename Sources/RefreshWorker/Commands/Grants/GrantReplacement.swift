import Clocks
import Store

/// What takes the place of a stored grant, decided by what was stored at one moment.
struct GrantReplacement: Sendable {
    let stored: Grant
    let handover: Handover
    let bringsOtherRefreshToken: Bool
    let switchesAccount: Bool
    let standing: ImportedGrant.Standing?
    let dueTimes: FirstDueTime

    /// Whether the decisions still hold for what is stored now: they hang on its refresh token, its client and its owner.
    func isBased(on grant: Grant) -> Bool {
        grant.id == stored.id && grant.generation == stored.generation && grant.owner == stored.owner
            && grant.clientID == stored.clientID && grant.refreshToken?.sealed == stored.refreshToken?.sealed
    }

    /// Puts the new content in place and answers what belongs in the history.
    func apply(to grant: inout Grant, at now: Timestamp) -> [GrantEvent] {
        // When it is due hangs on the tokens that are there afterwards, which `reconnect` chooses.
        var preview = grant
        _ = reconnect(&preview, dueAt: nil, at: now)
        let dueAt = dueTimes.due(
            accessToken: preview.accessToken,
            hasRefreshToken: preview.refreshToken != nil,
            id: grant.id,
            at: now
        )
        var events = reconnect(&grant, dueAt: dueAt, at: now)
        guard let standing else { return events }
        if standing.state.endsCalls {
            // These raise the fence, so that a late answer does not bring the grant back.
            if standing.wipesTokens {
                _ = grant.disconnectByRequest(revokes: false, at: now)
            } else {
                _ = grant.disconnect(reason: standing.reason, at: now)
            }
        }
        grant.take(standing, history: &events, at: now)
        return events
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

extension ImportedGrant.Standing {
    /// Whether the user asked for the end of the grant, after which nobody keeps its tokens.
    var wipesTokens: Bool { state == .disconnected && reason == .userRequest }
}

extension Grant {
    /// Takes the state that the grant had elsewhere, and lets the event of its arrival tell of that state.
    mutating func take(_ standing: ImportedGrant.Standing, history events: inout [GrantEvent], at now: Timestamp) {
        adopt(state: standing.state, reason: standing.reason, since: standing.since ?? now)
        for position in events.indices {
            events[position].to = state
            events[position].reason = reason
            events[position].generation = generation
        }
    }
}

extension Grant.Owner {
    /// Whether both are known to be different accounts at Google.
    ///
    /// The ids decide where both are known, else the e-mails without regard to case; what is unknown is no difference.
    func isOtherAccount(than other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID != otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.lowercased() != otherEmail.lowercased()
    }
}
