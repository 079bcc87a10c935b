import Base
import GoogleOAuth
import Storage

extension SecurityEventToken {
    /// The limit of the time between an event and the issue of its token.
    ///
    /// Google does not document one. A user who disconnects and signs in again immediately must keep the new token. For
    /// example: at 0 s the user disconnects, at 5 s signs in again, at 20 s Google issues `tokens-revoked` for the
    /// tokens of 0 s.
    static let maximumDelayOfIssue = Duration.seconds(15 * 60)

    /// `true` if the event might have happened before the app last sent tokens: then it might be about former tokens.
    ///
    /// Google's tokens have only a time of issue: the event might have happened up to ``maximumDelayOfIssue`` before
    /// it. If the time of issue is ahead of this machine's clock, the clock is slow, and so is the stored time of the
    /// connection. Times are in whole seconds: an event in the second of the connection counts as later.
    func mayPrecede(lastConnection: Timestamp, receivedAt now: Timestamp) -> Bool {
        if let happenedAt { return lastConnection >= happenedAt + .seconds(1) }
        return lastConnection + Self.maximumDelayOfIssue >= min(issuedAt, now)
    }
}

enum SecurityEventAction: Equatable {
    /// Deletes the tokens, which are dead.
    case disconnect(GrantReason)
    case suspend(GrantReason)
    /// Sends a refresh, because Google's response decides.
    case askGoogle
    case ignore
}

/// The rules for the effects of Google's events.
extension SecurityEvent.Kind {
    /// Returns the effect of an event on a grant that it names.
    ///
    /// A grant whose tokens might be newer than the event is refreshed: only Google's own answer ends it. A hash
    /// identifies the stored token itself, so it is trusted at any time. 16 characters are not enough proof to delete a
    /// token. A grant is not suspended until Google has responded, because its user might have connected a moment ago.
    func action(on grant: Grant, mustAskGoogle: Bool) -> SecurityEventAction {
        switch self {
        case .tokenRevoked(.doubleHash): .disconnect(.tokenRevoked)
        case .tokenRevoked(.prefix): mustAskGoogle ? .askGoogle : .disconnect(.tokenRevoked)
        case .tokensRevoked: mustAskGoogle ? .askGoogle : .disconnect(.tokensRevoked)
        case .accountDisabled where grant.state.endsRefreshes: .ignore
        case .accountDisabled: mustAskGoogle ? .askGoogle : .suspend(.accountDisabled)
        case .accountEnabled: grant.state.endsRefreshes ? .ignore : .askGoogle
        case .sessionsRevoked, .credentialChangeRequired, .verification, .other: .ignore
        }
    }

    /// `true` if the app's own sessions of the account end.
    ///
    /// All of them end, even those that began after the event: one unnecessary sign-in does less harm than an
    /// attacker's session that continues.
    var endsSessions: Bool {
        switch self {
        case .sessionsRevoked, .accountDisabled: true
        default: false
        }
    }

    var isOnlyRecorded: Bool {
        switch self {
        case .credentialChangeRequired, .verification, .other: true
        default: false
        }
    }
}
