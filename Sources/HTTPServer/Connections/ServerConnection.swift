internal import Base
private import Glibc
private import Synchronization

/// One open connection, from its acceptance to its end.
final class ServerConnection: Sendable {
    private struct State {
        /// `nil` once libmicrohttpd is about to close it: another connection can then get the number.
        var descriptor: Int32?
        var phase: ConnectionPhase
        var requests = 0
    }

    /// `nil` for a unix socket.
    let network: NetworkAddress?
    let address: String
    let isTrustedProxy: Bool
    /// The certificate that the connection's TLS session uses until it ends, or `nil` without TLS.
    private let certificate: ServerCertificate?
    private let state: Mutex<State>

    init(
        descriptor: Int32,
        network: NetworkAddress?,
        isTrustedProxy: Bool,
        certificate: ServerCertificate?,
        at now: BootInstant
    ) {
        self.network = network
        self.isTrustedProxy = isTrustedProxy
        self.certificate = certificate
        address = network?.description ?? "unix"
        state = Mutex(State(descriptor: descriptor, phase: ConnectionPhase(connectedAt: now)))
    }

    /// The client's current activity.
    var kind: ConnectionPhase.Kind { state.withLock { $0.phase.kind } }

    /// Records that a request's first line has arrived, and returns the number of requests on the connection, including
    /// this one.
    func beginRequest(at now: BootInstant) -> Int {
        state.withLock { state in
            state.requests += 1
            // `false` if the server has given up on the client. The next move fails too, and its result is used.
            _ = state.phase.move(to: .head, at: now)
            return state.requests
        }
    }

    /// Moves the client to another phase.
    ///
    /// Returns `false` if the server has given up on it. It then gets no response.
    func move(to next: ConnectionPhase.Kind, at now: BootInstant) -> Bool {
        state.withLock { $0.phase.move(to: next, at: now) }
    }

    /// Ends the connection of a client that has taken too long.
    ///
    /// The socket is only shut down. Its thread notices that and closes it. All of this happens under the lock that
    /// ``disconnected()`` waits for, so the descriptor still belongs to this connection. While a request is being read,
    /// libmicrohttpd writes nothing that could mix with the 408.
    func check(at now: BootInstant, deadlines: ConnectionDeadlines, idle: Duration) {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            let action = state.phase.check(
                at: now,
                received: { network == nil ? nil : Self.receivedBytes(descriptor) },
                deadlines: deadlines,
                idle: idle
            )
            switch action {
            case nil: return
            case .close: break
            // A TLS client would read the plain text as a broken record. Its handshake might not even be complete.
            case .timeOut where certificate != nil: break
            case .timeOut:
                let response = Self.timeOut
                // The connection ends whether or not the bytes are accepted.
                _ = unsafe send(descriptor, response, response.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            }
            ListeningSocket.shutDown(descriptor)
        }
    }

    /// Clears the descriptor, because the connection is about to be closed.
    func disconnected() {
        state.withLock { $0.descriptor = nil }
    }

    private static let timeOut = Array(
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8
    )

    /// Reads `tcpi_bytes_received`, which is beyond the end of glibc's `tcp_info`.
    ///
    /// In Linux's own, since 4.1, its offset is 128
    /// (https://github.com/torvalds/linux/blob/v6.1/include/uapi/linux/tcp.h).
    private static func receivedBytes(_ descriptor: Int32) -> UInt64? {
        unsafe withUnsafeTemporaryAllocation(byteCount: 136, alignment: 8) { buffer in
            var size = socklen_t(buffer.count)
            guard unsafe getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, buffer.baseAddress, &size) == 0,
                size >= 136
            else { return nil }
            return unsafe buffer.load(fromByteOffset: 128, as: UInt64.self)
        }
    }
}
