extension HTTPClient {
    /// What a client has done since it was made.
    package struct Counters: Hashable, Sendable {
        /// Requests taken on; `completed`, `failed`, `waiting` and `inFlight` add up to it.
        package var requests = 0
        /// Requests that were answered, whatever the status.
        package var completed = 0
        package var failed = 0
        package var waiting = 0
        package var inFlight = 0
        package var newConnections = 0
        /// Answered requests that needed no new connection.
        package var reusedConnections = 0
        package var http1Answers = 0
        package var http2Answers = 0
        /// Bytes of bodies, as are those received; headers are not counted.
        package var bytesSent = 0
        package var bytesReceived = 0
        /// Rounds of the owner thread: grows at least once a second while the thread is well.
        package var rounds = 0
    }
}
