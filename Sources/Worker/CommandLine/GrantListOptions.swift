/// The arguments of `grants list`: each of the first five leaves out the grants that do not fit it.
package struct GrantListOptions: Equatable, Sendable {
    /// The order of the list; without one, the list is in the order of the grants' ids.
    package enum Order: String, CaseIterable, Sendable {
        case due
        case user
        case since
    }

    package var state: String?
    package var reason: String?
    package var clientID: String?
    /// `true` if only connected grants whose access token has expired are wanted.
    package var isExpired = false
    /// `true` if only grants with a token that the key ring does not open are wanted.
    package var isUnreadable = false
    package var order: Order?
    package var limit: Int?
    package var isJSON = false

    package init(
        state: String? = nil,
        reason: String? = nil,
        clientID: String? = nil,
        isExpired: Bool = false,
        isUnreadable: Bool = false,
        order: Order? = nil,
        limit: Int? = nil,
        isJSON: Bool = false
    ) {
        self.state = state
        self.reason = reason
        self.clientID = clientID
        self.isExpired = isExpired
        self.isUnreadable = isUnreadable
        self.order = order
        self.limit = limit
        self.isJSON = isJSON
    }
}
