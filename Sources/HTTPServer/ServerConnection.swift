internal import Base
private import Dispatch
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

/// The current activity of a client and its start.
///
/// It decides when the client has taken too long.
struct ConnectionPhase: Equatable {
    enum Kind: Equatable {
        /// Between requests, with the number of bytes received at the last check, if known.
        case idle(received: UInt64?)
        /// Part of a head has arrived.
        case head
        /// The head is complete and the body is not.
        case body
        /// The request is complete and its handler is running.
        case handling
        /// The response is being sent.
        case responding
        /// The server has given up on the client.
        case ended

        /// `true` while a request has begun and is not complete.
        var isPartOfRequest: Bool { self == .head || self == .body }
    }

    /// The action for a client that has taken too long.
    enum Action {
        case close
        /// No response has begun, so a 408 can be sent.
        case timeOut
    }

    private(set) var kind: Kind
    private(set) var since: BootInstant

    init(connectedAt now: BootInstant) {
        // Nothing can have been read from a new connection.
        kind = .idle(received: 0)
        since = now
    }

    /// Moves to another phase, and returns `false` if the server has already given up on the client.
    mutating func move(to next: Kind, at now: BootInstant) -> Bool {
        guard kind != .ended else { return false }
        // Each piece of a head or a body makes a move, and the deadline of a request counts from its first byte.
        let isReadingOn = kind.isPartOfRequest && next.isPartOfRequest
        if !isReadingOn { since = now }
        kind = next
        return true
    }

    /// Checks whether the client has taken too long, and returns the action then.
    ///
    /// It is called regularly, because libmicrohttpd reports a request only after it has read the first line.
    mutating func check(
        at now: BootInstant,
        received: () -> UInt64?,
        deadlines: ConnectionDeadlines,
        idle: Duration
    ) -> Action? {
        switch kind {
        case .idle(let before):
            let bytes = received()
            if let before, let bytes, bytes != before {
                kind = .head
                since = now
                return nil
            }
            kind = .idle(received: bytes)
            return end(.close, after: idle, now)
        case .head: return end(.timeOut, after: deadlines.head, now)
        case .body: return end(.timeOut, after: deadlines.request, now)
        case .responding: return end(.close, after: deadlines.response, now)
        case .handling, .ended: return nil
        }
    }

    private mutating func end(_ action: Action, after span: Duration, _ now: BootInstant) -> Action? {
        guard now - since >= span else { return nil }
        kind = .ended
        return action
    }
}

/// The time limits for each part of a request.
package struct ConnectionDeadlines: Sendable {
    /// The time from a request's first byte to the end of its headers.
    ///
    /// The first request includes the TLS handshake.
    var head: Duration = .seconds(10)

    /// The time from a request's first byte to the end of its body.
    var request: Duration = .seconds(30)

    /// The time that the client can take to receive a response.
    var response: Duration = .seconds(30)

    /// The time between two requests, while connections are not scarce.
    var idle: Duration = .seconds(60)

    /// Returns the idle time limit for the given number of open connections.
    ///
    /// At the maximum no further client is accepted, so idle connections must end before that. From three quarters of
    /// the maximum on, the limit shrinks gradually to one second.
    func idle(open: Int, of maximum: Int) -> Duration {
        let free = max(0, maximum - open)
        let ample = max(1, maximum / 4)
        return free >= ample ? idle : max(.seconds(1), idle * free / ample)
    }
}

/// All open connections.
///
/// It limits their number per address, and ends those of clients that have taken too long.
final class ServerConnections: Sendable {
    private struct State {
        var open: [ObjectIdentifier: ServerConnection] = [:]
        var countPerBlock: [NetworkAddress: Int] = [:]
        var isMonitored = false
    }

    private let maximum: Int
    private let maximumPerAddress: Int?
    private let deadlines: ConnectionDeadlines
    private let trustedProxies: TrustedProxies
    private let time: any TimeSource
    private let monitorQueue = DispatchQueue(label: "http-server.clients")
    private let state = Mutex(State())

    init(configuration: HTTPServer.Configuration, time: any TimeSource) {
        maximum = configuration.maximumConnections
        maximumPerAddress = configuration.maximumConnectionsPerAddress
        deadlines = configuration.deadlines
        trustedProxies = configuration.trustedProxies
        self.time = time
    }

    /// The number of open connections.
    var count: Int { state.withLock { $0.open.count } }

    /// The current activity of each client.
    var kinds: [ConnectionPhase.Kind] { state.withLock { $0.open.values.map(\.kind) } }

    /// Returns `true` if the address can open another connection.
    ///
    /// A trusted proxy always can, because it serves many clients.
    func admits(_ network: NetworkAddress?) -> Bool {
        guard let network, let maximumPerAddress, !trustedProxies.contains(network) else { return true }
        return state.withLock { $0.countPerBlock[network.limitBlock, default: 0] < maximumPerAddress }
    }

    func connected(descriptor: Int32, network: NetworkAddress?, certificate: ServerCertificate?) -> ServerConnection {
        let client = ServerConnection(
            descriptor: descriptor,
            network: network,
            isTrustedProxy: network.map(trustedProxies.contains) ?? false,
            certificate: certificate,
            at: time.sinceBoot
        )
        state.withLock { state in
            state.open[ObjectIdentifier(client)] = client
            if let network { state.countPerBlock[network.limitBlock, default: 0] += 1 }
        }
        return client
    }

    func disconnected(_ client: ServerConnection) {
        client.disconnected()
        state.withLock { state in
            state.open[ObjectIdentifier(client)] = nil
            guard let block = client.network?.limitBlock else { return }
            let remaining = state.countPerBlock[block, default: 1] - 1
            state.countPerBlock[block] = remaining > 0 ? remaining : nil
        }
    }

    /// Checks every client once a second, until ``stopMonitoring()``.
    func startMonitoring() {
        state.withLock { $0.isMonitored = true }
        scheduleCheck()
    }

    func stopMonitoring() {
        state.withLock { $0.isMonitored = false }
    }

    private func scheduleCheck() {
        monitorQueue.asyncAfter(deadline: .now() + 1) { [self] in
            guard state.withLock({ $0.isMonitored }) else { return }
            checkAll()
            scheduleCheck()
        }
    }

    /// Ends the connections of the clients that have taken too long.
    func checkAll() {
        let clients = state.withLock { Array($0.open.values) }
        let now = time.sinceBoot
        let idle = deadlines.idle(open: clients.count, of: maximum)
        for client in clients { client.check(at: now, deadlines: deadlines, idle: idle) }
    }
}
