extension HTTPClient {
    /// The counts of a client's work since it was made.
    package struct Counters: Hashable, Sendable {
        /// Submitted requests: the sum of `completed`, `failed`, `waiting` and `inFlight`.
        var requests = 0
        /// Requests that got a response, with any status.
        var completed = 0
        var failed = 0
        var waiting = 0
        var inFlight = 0
        package var newConnections = 0
        /// Responses that did not need a new connection.
        package var reusedConnections = 0
        /// Rounds of the client's thread. It grows at least once a second while the thread works.
        package var rounds = 0
    }
}
