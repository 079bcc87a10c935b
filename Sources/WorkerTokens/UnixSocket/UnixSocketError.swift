/// Why a request over a unix socket has no response.
public enum UnixSocketError: Error, Hashable, Sendable {
    /// The socket cannot be used: the number is that of `errno`, such as 2 (no such file) or 13 (permission denied).
    case system(call: String, errno: Int32)
    /// The request took longer than its ``WorkerTokens/Request/timeout``.
    case timedOut
    /// The worker closed the connection before its response was complete.
    case closedEarly
    /// The response is larger than any of a worker.
    case responseTooLarge
    /// What came is not a response of a worker.
    case notHTTP
}

extension UnixSocketError: CustomStringConvertible {
    /// The problem in a few words.
    public var description: String {
        switch self {
        case .system(let call, let number): "\(call) failed with errno \(number)"
        case .timedOut: "no response came in time"
        case .closedEarly: "the connection was closed before the response was complete"
        case .responseTooLarge: "the response is too large"
        case .notHTTP: "the response is not HTTP of a worker"
        }
    }
}
