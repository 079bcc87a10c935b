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
    /// A label that the connection must have.
    package var label: Label?

    /// A label's name and value.
    package struct Label: Equatable, Sendable {
        let name: String
        let value: String

        /// Parses `NAME=VALUE`.
        package init?(_ text: String) {
            guard let separator = text.firstIndex(of: "=") else { return nil }
            name = String(text[..<separator])
            value = String(text[text.index(after: separator)...])
            guard ConnectionLabels([name: value]) != nil else { return nil }
        }

        /// The label as it is parsed.
        package var text: String { "\(name)=\(value)" }
    }

    package init(
        state: GrantState? = nil,
        reason: GrantReason? = nil,
        clientID: String? = nil,
        isExpired: Bool = false,
        since: Timestamp? = nil,
        label: Label? = nil
    ) {
        self.state = state
        self.reason = reason
        self.clientID = clientID
        self.isExpired = isExpired
        self.since = since
        self.label = label
    }

    /// `true` if the state alone decides, which the store finds by an index.
    package var isOfStateOnly: Bool { self == GrantFilter(state: state) }

    package func matches(_ grant: Grant, at now: Timestamp) -> Bool {
        if let state, grant.state != state { return false }
        if let reason, grant.reason != reason { return false }
        if let clientID, grant.clientID != clientID { return false }
        if let since, grant.since < since { return false }
        if let label, grant.labels.pairs[label.name] != label.value { return false }
        return !isExpired || grant.isExpired(at: now)
    }
}

extension Grant {
    /// `true` if it is connected without a valid access token.
    fileprivate func isExpired(at now: Timestamp) -> Bool {
        guard state.isConnected else { return false }
        guard let accessToken else { return since <= now }
        return accessToken.expiresAt <= now
    }
}
