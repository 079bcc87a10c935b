import Clocks
import GoogleOAuth
import Store

/// What an event of Google's asks for: the one place where that is decided, and without any effect.
enum SecurityEventRules {
    /// What becomes of one grant.
    enum GrantAction: Hashable {
        /// Its tokens are dead: wiped at once.
        case disconnect(GrantReason)
        case suspend(GrantReason)
        /// Google is asked how things stand.
        case probe
        case leave
    }

    /// The longest time that may lie between an event and the issue of its token.
    ///
    /// Google documents no limit. A user who disconnects and signs in again at once must keep the new token: 0 s
    /// disconnects, 5 s signs in again, 20 s Google issues `tokens-revoked` for the tokens of 0 s.
    private static let longestDelayOfIssue = Duration.seconds(15 * 60)

    /// `true` if the event may have happened before the app last brought tokens, so that it may be about former tokens.
    ///
    /// Google's tokens have only a time of issue, so everything within ``longestDelayOfIssue`` before it is possible. A
    /// time of issue ahead of this machine's clock shows that the clock is slow, and that the stored time of the
    /// connection is as well. Times are in whole seconds: an event of the connection's own second counts as later.
    static func mayPrecede(lastConnection: Timestamp, _ token: SecurityEventToken, receivedAt now: Timestamp) -> Bool {
        if let happenedAt = token.happenedAt { return lastConnection >= happenedAt + .seconds(1) }
        return lastConnection + longestDelayOfIssue >= min(token.issuedAt, now)
    }

    /// The effect of an event on a grant that it names.
    ///
    /// A grant whose tokens may be newer than the event is probed: only Google's own answer ends it. A hash identifies the
    /// stored token itself, so it is believed at any time; 16 characters are not proof enough to delete a token.
    static func action(for kind: SecurityEvent.Kind, mayBeOlder: Bool, on grant: Grant) -> GrantAction {
        switch kind {
        case .tokenRevoked(.doubleHash): .disconnect(.tokenRevoked)
        case .tokenRevoked(.prefix): mayBeOlder ? .probe : .disconnect(.tokenRevoked)
        case .tokensRevoked: mayBeOlder ? .probe : .disconnect(.tokensRevoked)
        case .accountDisabled where grant.state.endsCalls: .leave
        case .accountDisabled: mayBeOlder ? .probe : .suspend(.accountDisabled)
        case .accountEnabled: grant.state.endsCalls ? .leave : .probe
        case .sessionsRevoked, .credentialChangeRequired, .verification, .other: .leave
        }
    }

    /// Whether the app's own sessions of the account end.
    ///
    /// All of them do, also one that began after the thing happened: to sign in once too often does less harm than a thief's
    /// session that goes on.
    static func endsSessions(_ kind: SecurityEvent.Kind) -> Bool {
        switch kind {
        case .sessionsRevoked, .accountDisabled: true
        default: false
        }
    }

    /// Whether the event asks for nothing but to be known.
    static func isForTheRecord(_ kind: SecurityEvent.Kind) -> Bool {
        switch kind {
        case .credentialChangeRequired, .verification, .other: true
        default: false
        }
    }
}
