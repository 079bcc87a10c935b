package import Base
package import Crypto
internal import Scheduler
package import Storage

/// The replacement of a stored grant, with the state that it had at its origin.
struct GrantReplacement: Sendable {
    let reconnection: Reconnection
    let recordedState: ImportedGrant.RecordedState?
    let firstDueTime: FirstDueTime

    /// `true` if the user ended the stored grant and the replacement would connect it again without a new refresh
    /// token.
    ///
    /// The stored refresh token of such a grant might be about to be revoked.
    var revivesEndedGrant: Bool {
        guard reconnection.stored.wasEndedByUser, recordedState?.state.endsRefreshes != true else { return false }
        return reconnection.incoming.refreshToken == nil || !reconnection.replacesRefreshToken
    }

    /// Replaces the content and returns the events for the history.
    func apply(to grant: inout Grant, at now: Timestamp) -> [GrantEvent] {
        var events = reconnection.apply(to: &grant, at: now) { grant in
            firstDueTime.due(
                accessToken: grant.accessToken,
                hasRefreshToken: grant.refreshToken != nil,
                id: grant.id,
                at: now
            )
        }
        guard let recordedState else { return events }
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

/// A condition of a connected grant that an operator should know about.
package enum GrantWarning: String, Sendable {
    /// The refresh token expires soon.
    case refreshTokenEnds = "refresh_token_ends"
    /// The grant was not refreshed for so long that Google might expire its refresh token.
    case idle
    /// The access token cannot be renewed when it expires.
    case noRefreshToken = "no_refresh_token"

    package static func all(of grant: Grant, at now: Timestamp) -> [GrantWarning] {
        guard grant.state.isConnected else { return [] }
        guard let refreshToken = grant.refreshToken else { return [.noRefreshToken] }
        var warnings: [GrantWarning] = []
        if let end = refreshToken.expiresAt, end < now + GrantStatistics.warningBeforeEnd {
            warnings.append(.refreshTokenEnds)
        }
        if (grant.lastSuccessAt ?? grant.createdAt) < now - GrantStatistics.idleBeforeWarning { warnings.append(.idle) }
        return warnings
    }

    package var sentence: String {
        switch self {
        case .refreshTokenEnds: "the refresh token expires soon: have the user sign in again before then"
        case .idle: "not refreshed for months: Google forgets refresh tokens that are not used for six"
        case .noRefreshToken: "no refresh token is stored: the user must sign in again when the access token expires"
        }
    }
}

/// A grant as an import reads it: checked, with tokens that are not yet sealed.
package struct ImportedGrant: Sendable {
    package struct AccessToken: Sendable {
        let secret: Secret
        let obtainedAt: Timestamp
        let expiresAt: Timestamp
        let type: String
    }

    /// The state that the grant had at its origin.
    package struct RecordedState: Equatable, Sendable {
        let state: GrantState
        let reason: GrantReason
        /// `nil` if the input does not have it.
        let since: Timestamp?
    }

    package let userID: String
    package var clientID: String
    var owner: Grant.Owner
    let scope: String?
    let refreshToken: Secret?
    let refreshTokenExpiresAt: Timestamp?
    let accessToken: AccessToken?
    let recordedState: RecordedState?
    /// The time at which the origin obtained the tokens, if known.
    package var obtainedAt: Timestamp?
}

extension ImportedGrant {
    /// A grant of which only the refresh token is known.
    package init(userID: String, clientID: String, refreshToken: Secret) {
        self.init(
            userID: userID,
            clientID: clientID,
            owner: Grant.Owner(),
            scope: nil,
            refreshToken: refreshToken,
            refreshTokenExpiresAt: nil,
            accessToken: nil,
            recordedState: nil
        )
    }
}

/// The rule for the first due time of an imported grant.
enum FirstDueTime: Sendable {
    case byToken
    case now
    /// A time within the interval of probes, so that many suspended grants are not all probed at once.
    case withinProbeInterval

    func due(accessToken: Grant.AccessToken?, hasRefreshToken: Bool, id: GrantID, at now: Timestamp) -> Timestamp {
        switch self {
        case .now: now
        case .withinProbeInterval: now + RefreshRules.probeSuspendedAfter * id.phase
        case .byToken:
            DuePolicy.due(accessToken: accessToken, hasRefreshToken: hasRefreshToken, phase: id.phase, at: now)
        }
    }
}
