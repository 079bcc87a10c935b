/// The arguments of `grants retry`: a user, or a state or a client id or both.
package struct GrantRetryOptions: Equatable, Sendable {
    package var user: String?
    package var state: String?
    package var clientID: String?
    package var isJSON = false

    package init(user: String? = nil, state: String? = nil, clientID: String? = nil, isJSON: Bool = false) {
        self.user = user
        self.state = state
        self.clientID = clientID
        self.isJSON = isJSON
    }
}
