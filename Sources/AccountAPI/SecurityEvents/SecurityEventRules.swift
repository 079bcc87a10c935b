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

    /// What the event means for a grant that it names.
    ///
    /// Google delivers late, and again. What the app brought after the thing happened is not what the event is about, so
    /// such a grant is asked about and not ended; Google tells whole seconds, and within one the event is believed. A hash
    /// names the very token that is stored, whenever it was brought.
    static func action(
        for kind: SecurityEvent.Kind,
        happenedAt: Timestamp,
        on grant: Grant,
        lastConnection: Timestamp?
    ) -> GrantAction {
        let isOutdated = lastConnection.map { $0 >= happenedAt + .seconds(1) } ?? false
        return switch kind {
        case .tokenRevoked(.doubleHash): .disconnect(.tokenRevoked)
        case .tokenRevoked(.prefix): isOutdated ? .probe : .disconnect(.tokenRevoked)
        case .tokensRevoked: isOutdated ? .probe : .disconnect(.tokensRevoked)
        case .accountDisabled where grant.state.endsCalls: .leave
        case .accountDisabled: isOutdated ? .probe : .suspend(.accountDisabled)
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
