internal import Clocks
private import Glibc
private import Synchronization

/// One open connection, from its acceptance to its end.
final class Client: Sendable {
    private struct State {
        /// Nil from the moment when libmicrohttpd is about to close it: the number may then be another connection's.
        var descriptor: Int32?
        var phase: ClientPhase
        var requests = 0
    }

    /// Nil for a unix socket's.
    let network: NetworkAddress?
    let address: String
    let isTrustedProxy: Bool
    /// What the connection's TLS session uses until it ends; nil without TLS.
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
        state = Mutex(State(descriptor: descriptor, phase: ClientPhase(connectedAt: now)))
    }

    /// What the client is at.
    var kind: ClientPhase.Kind { state.withLock { $0.phase.kind } }

    /// A request's first line has come; tells how many there were on the connection, with this one.
    func began(at now: BootInstant) -> Int {
        state.withLock { state in
            state.requests += 1
            // False where the server has given up on the client: so will be the next move, which is the one that counts.
            _ = state.phase.move(to: .head, at: now)
            return state.requests
        }
    }

    /// The client has come to something else; false if the server has given up on it, and then it gets no answer.
    func move(to next: ClientPhase.Kind, at now: BootInstant) -> Bool {
        state.withLock { $0.phase.move(to: next, at: now) }
    }

    /// Ends the connection of a client that has taken too long.
    ///
    /// The socket is only shut down: its thread finds that out and closes it. All under the lock, which ``disconnected()``
    /// waits for, so the descriptor is this connection's; and while a request is being read libmicrohttpd writes nothing
    /// that the 408 could get mixed up with.
    func look(at now: BootInstant, deadlines: Deadlines, idle: Duration) {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            let verdict = state.phase.look(
                at: now,
                received: { network == nil ? nil : Self.receivedBytes(descriptor) },
                deadlines: deadlines,
                idle: idle
            )
            switch verdict {
            case nil: return
            case .close: break
            // A TLS client would take the plain text for a broken record; it may not even have ended its handshake.
            case .timeOut where certificate != nil: break
            case .timeOut:
                let answer = Self.timeOut
                // Whether it is taken or not, the connection ends.
                _ = unsafe send(descriptor, answer, answer.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            }
            shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    /// The connection is about to be closed.
    func disconnected() {
        state.withLock { $0.descriptor = nil }
    }

    private static let timeOut = Array(
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8
    )

    /// `tcpi_bytes_received`, which glibc's own `tcp_info` ends before: in Linux's it lies at byte 128, since 4.1
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
