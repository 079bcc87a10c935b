extension WorkerTokens {
    /// The worker's response, from a transport.
    public struct Response: Sendable {
        /// The status, such as 200.
        public let status: Int
        /// The value of the field `Retry-After`, if there is one.
        public let retryAfter: String?
        /// The body.
        public let body: [UInt8]

        /// Creates a response from the parts that matter here.
        public init(status: Int, retryAfter: String?, body: [UInt8]) {
            self.status = status
            self.retryAfter = retryAfter
            self.body = body
        }
    }
}

extension WorkerTokens.Response: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The status, without the body.
    public var description: String { "Response(\(status))" }
    /// The status, without the body.
    public var debugDescription: String { description }
    /// An empty mirror, so that `dump` does not print a token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
