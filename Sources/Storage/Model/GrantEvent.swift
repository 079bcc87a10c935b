package import Base

/// One event of a grant's history.
package struct GrantEvent: Hashable, Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        /// The app or an import brought tokens.
        case connected
        /// The state changed.
        case state
        /// Another refresh token replaced the stored one.
        case rotated
        /// The granted scopes differ from those of the previous answer.
        case scopeChanged = "scope_changed"
    }

    package var grant: GrantID
    package var at: Timestamp
    package var kind: Kind
    package var from: GrantState?
    package var to: GrantState
    package var reason: GrantReason
    package var generation: Int64
    /// The time of the consent that Google has ended, if this event is its end and the time is known.
    package internal(set) var consentedAt: Timestamp?
}

extension GrantEvent {
    package init(of grant: Grant, kind: Kind, from: GrantState?, at now: Timestamp) {
        self.init(
            grant: grant.id,
            at: now,
            kind: kind,
            from: from,
            to: grant.state,
            reason: grant.reason,
            generation: grant.generation
        )
    }
}
