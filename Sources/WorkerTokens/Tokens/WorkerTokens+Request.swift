extension WorkerTokens {
    /// A request to the worker, for a transport. It contains the credential, and is never printed.
    public struct Request: Sendable {
        /// A field of the request's head.
        public struct Header: Sendable {
            /// The field's name.
            public let name: String
            /// The field's value.
            public let value: String
        }

        /// `GET` or `POST`.
        public let method: String
        /// The whole address.
        public let url: String
        /// The path and the query of the address.
        public let target: String
        /// The fields, among them the credential.
        public let headers: [Header]
        /// The body, which is empty for `GET`.
        public let body: [UInt8]

        /// The seconds after which a transport must give up: the worker itself needs less, also while Google is slow.
        public var timeout: Int { Self.timeout }

        static let timeout = 60
    }
}

extension WorkerTokens.Request: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, without the rest.
    public var description: String { "Request(\(method))" }
    /// The method, without the rest.
    public var debugDescription: String { description }
    /// An empty mirror, so that `dump` does not print the credential.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
