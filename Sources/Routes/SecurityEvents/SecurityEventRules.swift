import Base
import GoogleOAuth
import Storage

/// The rules for the effects of Google's events.
enum SecurityEventRules {
    /// The effect on one grant.
    enum GrantAction: Hashable {
        /// Deletes the tokens, which are dead.
        case disconnect(GrantReason)
        case suspend(GrantReason)
        /// Sends a refresh, because Google's answer decides.
        case probe
        case ignore
    }

    /// The limit of the time between an event and the issue of its token.
    ///
    /// Google does not document one. A user who disconnects and signs in again immediately must keep the new token. For
    /// example: at 0 s the user disconnects, at 5 s signs in again, at 20 s Google issues `tokens-revoked` for the
    /// tokens of 0 s.
    private static let maxDelayOfIssue = Duration.seconds(15 * 60)

    /// `true` if the event may have happened before the app last sent tokens: then it may be about former tokens.
    ///
    /// Google's tokens have only a time of issue: the event may have happened up to ``maxDelayOfIssue`` before it.
    /// If the time of issue is ahead of this machine's clock, the clock is slow, and so is the stored time of the
    /// connection. Times are in whole seconds: an event in the second of the connection counts as later.
    static func mayPrecede(lastConnection: Timestamp, _ token: SecurityEventToken, receivedAt now: Timestamp) -> Bool {
        if let happenedAt = token.happenedAt { return lastConnection >= happenedAt + .seconds(1) }
        return lastConnection + maxDelayOfIssue >= min(token.issuedAt, now)
    }

    /// Returns the effect of an event on a grant that it names.
    ///
    /// A grant whose tokens may be newer than the event is probed: only Google's own answer ends it. A hash identifies
    /// the stored token itself, so it is trusted at any time; 16 characters are not enough proof to delete a token.
    static func action(for kind: SecurityEvent.Kind, mayBeOlder: Bool, on grant: Grant) -> GrantAction {
        switch kind {
        case .tokenRevoked(.doubleHash): .disconnect(.tokenRevoked)
        case .tokenRevoked(.prefix): mayBeOlder ? .probe : .disconnect(.tokenRevoked)
        case .tokensRevoked: mayBeOlder ? .probe : .disconnect(.tokensRevoked)
        case .accountDisabled where grant.state.endsRefreshes: .ignore
        case .accountDisabled: mayBeOlder ? .probe : .suspend(.accountDisabled)
        case .accountEnabled: grant.state.endsRefreshes ? .ignore : .probe
        case .sessionsRevoked, .credentialChangeRequired, .verification, .other: .ignore
        }
    }

    /// `true` if the app's own sessions of the account end.
    ///
    /// All of them end, even those that began after the event: one unnecessary sign-in does less harm than an
    /// attacker's session that continues.
    static func endsSessions(_ kind: SecurityEvent.Kind) -> Bool {
        switch kind {
        case .sessionsRevoked, .accountDisabled: true
        default: false
        }
    }

    /// `true` if the event is only recorded.
    static func isOnlyRecorded(_ kind: SecurityEvent.Kind) -> Bool {
        switch kind {
        case .credentialChangeRequired, .verification, .other: true
        default: false
        }
    }
}
