/// The condition of one client id at Google, as far as this worker knows.
package struct ClientStatus: Hashable, Sendable {
    package enum Breaker: String, Sendable {
        case closed, open, probing
    }

    package var clientID: String
    package var breaker: Breaker
    /// The requests per second that are allowed now.
    package var ceiling: Double
}
