extension HTTPClient {
    /// The counts of a client's work since it was made.
    package struct Counters: Hashable, Sendable {
        /// Submitted requests: the sum of `completed`, `failed`, `waiting` and `inFlight`.
        package var requests = 0
        /// Requests that got a response, with any status.
        package var completed = 0
        package var failed = 0
        package var waiting = 0
        package var inFlight = 0
        package var newConnections = 0
        /// Responses that did not need a new connection.
        package var reusedConnections = 0
        package var http1Responses = 0
        package var http2Responses = 0
        /// Bytes of bodies; headers are not counted, here and in `bytesReceived`.
        package var bytesSent = 0
        package var bytesReceived = 0
        /// Rounds of the client's thread.
        ///
        /// It grows at least once a second while the thread works.
        package var rounds = 0
    }
}
