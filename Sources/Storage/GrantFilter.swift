package import Base

/// The grants that a list shows: those that fit everything that is set.
package struct GrantFilter: Equatable, Sendable {
    package var state: GrantState?
    package var reason: GrantReason?
    package var clientID: String?
    /// `true` for connected grants without a valid access token, as ``ExpiredGrants`` counts them.
    package var isExpired = false
    /// The earliest time at which the grant came into its state.
    package var since: Timestamp?

    package init(
        state: GrantState? = nil,
        reason: GrantReason? = nil,
        clientID: String? = nil,
        isExpired: Bool = false,
        since: Timestamp? = nil
    ) {
        self.state = state
        self.reason = reason
        self.clientID = clientID
        self.isExpired = isExpired
        self.since = since
    }

    /// `true` if the state alone decides, which the store finds by an index.
    package var isOfStateOnly: Bool { self == GrantFilter(state: state) }

    package func matches(_ grant: Grant, at now: Timestamp) -> Bool {
        (state == nil || grant.state == state) && (reason == nil || grant.reason == reason)
            && (clientID == nil || grant.clientID == clientID) && grant.since >= since ?? grant.since
            && (!isExpired || grant.state.isConnected && (grant.accessToken?.expiresAt ?? grant.since) <= now)
    }
}
