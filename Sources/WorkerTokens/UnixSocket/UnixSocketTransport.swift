#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Sends requests over a unix socket, each on a connection of its own.
///
/// ``WorkerTokens/init(unixSocket:credential:)`` uses it. No thread waits for a response.
public struct UnixSocketTransport: Sendable {
    private let path: String

    /// Creates a transport for the socket at a path.
    ///
    /// - Throws: ``TokenError/invalidConfiguration(message:)`` if the path is empty, has a NUL, or is too long for the
    ///   system: 107 bytes on Linux, 103 on Apple systems.
    public init(path: String) throws(TokenError) {
        guard (1..<Self.pathCapacity).contains(path.utf8.count), !path.utf8.contains(0) else {
            throw .invalidConfiguration(
                message: "The path of the socket must have 1 to \(Self.pathCapacity - 1) bytes, without a NUL."
            )
        }
        self.path = path
    }

    /// Sends a request and returns the response. A cancelled task closes the connection.
    ///
    /// - Throws: ``UnixSocketError``, or `CancellationError`.
    public func send(_ request: WorkerTokens.Request) async throws -> WorkerTokens.Response {
        try await send(request, timeout: Double(request.timeout))
    }

    /// Sends a request with another deadline.
    package func send(_ request: WorkerTokens.Request, timeout: Double) async throws -> WorkerTokens.Response {
        let exchange = UnixSocketExchange(path: path, bytes: Self.bytes(of: request), timeout: timeout)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { exchange.start($0) }
        } onCancel: {
            exchange.cancel()
        }
    }

    private static let pathCapacity = MemoryLayout.size(ofValue: sockaddr_un().sun_path)

    private static func bytes(of request: WorkerTokens.Request) -> [UInt8] {
        var head = "\(request.method) \(request.target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        for header in request.headers { head += "\(header.name): \(header.value)\r\n" }
        if !request.body.isEmpty { head += "Content-Length: \(request.body.count)\r\n" }
        return Array("\(head)\r\n".utf8) + request.body
    }
}
