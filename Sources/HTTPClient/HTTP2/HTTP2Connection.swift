internal import Base

/// One connection that speaks HTTP/2: the bytes of a ``TLSConnection``, framed by a session.
final class HTTP2Connection {
    enum State {
        case connecting
        case open
        /// No request can begin on the connection. Those that did can still end.
        case draining
    }

    let tls: TLSConnection
    private let session: HTTP2Session
    private let input: InputBuffer
    private(set) var state = State.connecting
    /// Why the connection is lost.
    private(set) var loss: HTTPError?
    /// `true` until the first request begins.
    private(set) var isUnused = true
    /// `true` if the last round read as much as it is allowed to, so that more might be left.
    private(set) var hasMoreInput = false
    /// `true` if the socket was readable or writable after the last wait.
    var isReady = false
    /// The time of the last sign of life: bytes from the server, or the first request after a pause.
    private var lastSign = BootInstant(milliseconds: 0)
    private var pingedAt: BootInstant?
    /// Since when output waits for a server that does not read.
    private var unsentSince: BootInstant?
    /// The bytes beside bodies that the server has sent since a request last began or ended.
    private var overheadBytes = 0

    /// The maximum number of requests on one connection at a time, also if the server allows more.
    static let maximumStreams = 100
    /// The read limit of one round, so that one server cannot hold up all others.
    private static let maximumReadsPerRound = 32
    /// The read limit before closing, when unread data would be lost. With full reads these are as many bytes as the
    /// connection's flow-control window. The window does not count the headers of frames.
    private static let maximumReadsAtTheEnd = 1024
    /// The maximum of ``overheadBytes``.
    ///
    /// It bounds the time that a server can take from all others with frames that cost it little, such as PING, empty
    /// DATA and interim responses. A response's headers fit many times.
    private static let maximumOverheadBytes = 1_048_576
    /// After this time without a sign of life the server is asked for one, and then given up.
    private static let patience = Duration.seconds(5)

    init(
        to endpoint: Endpoint,
        configuration: HTTPClient.Configuration,
        userAgent: HTTP2Fields,
        input: InputBuffer
    ) throws(HTTPError) {
        tls = try TLSConnection(to: endpoint, configuration: configuration)
        session = try HTTP2Session(configuration, userAgent: userAgent)
        self.input = input
    }

    func establish(at now: BootInstant) throws(HTTPError) {
        try tls.establish()
        lastSign = now
        state = .open
        // Settings that arrived with the end of the handshake were read ahead: the socket will not become readable.
        isReady = true
    }
}

// MARK: - Requests

extension HTTP2Connection {
    /// Requests that can begin now.
    var freeStreams: Int {
        guard state == .open, loss == nil, !session.hasUnsentOutput, session.takesRequests else { return 0 }
        return max(0, min(Self.maximumStreams, session.maximumStreams) - session.openStreams)
    }

    var isIdle: Bool { session.openStreams == 0 }

    /// `true` if the connection can be closed without loss: the session has ended, or nothing is left to wait for.
    var isOver: Bool {
        guard state != .connecting else { return false }
        let isDrained = state == .draining && session.unfinished.isEmpty
        return session.isOver || isDrained
    }

    /// Begins a request, which ``flush(at:)`` sends, and returns `false` if the connection cannot take it.
    func begin(_ transfer: HTTPTransfer, at now: BootInstant) -> Bool {
        if isIdle { lastSign = now }
        attempt { () throws(HTTPError) in try session.submit(transfer) }
        guard loss == nil else { return false }
        transfer.http2 = self
        transfer.isIssued = true
        if isUnused { transfer.opensConnection = true }
        isUnused = false
        overheadBytes = 0
        return true
    }

    /// Ends a request before its response is complete.
    ///
    /// ``flush(at:)`` notifies the server.
    func cancel(_ transfer: HTTPTransfer) {
        attempt { () throws(HTTPError) in try session.cancel(transfer) }
    }

    func takeEnded() -> [HTTPTransfer] {
        let ended = session.takeEnded()
        if !ended.isEmpty { overheadBytes = 0 }
        return ended
    }

    var unfinished: [HTTPTransfer] { session.unfinished }
}

// MARK: - Bytes

extension HTTP2Connection {
    /// `true` if output waits until the socket is writable.
    var awaitsWriting: Bool { session.hasUnsentOutput }

    /// Sends what the session has to send.
    func flush(at now: BootInstant) {
        guard state != .connecting, loss == nil else { return }
        var failure: UInt32?
        do throws(HTTPError) {
            try session.send { bytes in
                switch tls.send(bytes) {
                case .moved(let count): return count
                case .wouldBlock: return 0
                case .closed: failure = 0
                case .failed(let code): failure = code
                }
                return 0
            }
        } catch {
            loss = loss ?? error
        }
        unsentSince = session.hasUnsentOutput ? unsentSince ?? now : nil
        guard let failure else { return }
        // The server might have responded before it closed the connection.
        receive(at: now, isLast: true)
        lose(.sendFailed, code: failure, "the connection was lost: \(tls.message(code: failure))")
    }

    /// Reads what has arrived.
    ///
    /// `isLast` is `true` if a response that is not read now would be lost. It must read until nothing is left before
    /// the loop waits for the socket: one `recv` brings more than one record.
    func receive(at now: BootInstant, isLast: Bool = false) {
        hasMoreInput = false
        for _ in 0..<(isLast ? Self.maximumReadsAtTheEnd : Self.maximumReadsPerRound) where loss == nil {
            switch unsafe tls.receive(into: input.bytes) {
            case .moved(let count):
                lastSign = now
                pingedAt = nil
                input.use(count) { bytes in attempt { () throws(HTTPError) in try session.receive(bytes) } }
                noteOverhead(count - session.takeBodyBytes())
            case .wouldBlock:
                return
            case .closed:
                return lose(.receiveFailed, "the server closed the connection before the response was complete")
            case .failed(let code):
                let kind = HTTPError.Kind(curlCode: code, requestIssued: true)
                return lose(kind, code: code, tls.message(code: code))
            }
        }
        hasMoreInput = loss == nil
    }

    private func noteOverhead(_ count: Int) {
        overheadBytes = max(0, overheadBytes + count)
        if overheadBytes > Self.maximumOverheadBytes {
            lose(.receiveFailed, "the server sent more than \(Self.maximumOverheadBytes) bytes beside its responses")
        }
    }

    private func attempt(_ call: () throws(HTTPError) -> Void) {
        do throws(HTTPError) {
            try call()
        } catch {
            lose(.receiveFailed, "HTTP/2 failed: \(error.message)")
        }
    }

    private func lose(_ kind: HTTPError.Kind, code: UInt32? = nil, _ message: String) {
        loss = loss ?? HTTPError(kind: kind, code: code.map { Int($0) }, message: message)
    }
}

// MARK: - Signs of life

extension HTTP2Connection {
    /// Stops the use of a connection whose server has ended it, or does not even answer a PING while requests wait.
    ///
    /// Requests in flight can still get their responses until their deadlines.
    func checkLife(at now: BootInstant) {
        guard state == .open else { return }
        if !session.takesRequests { state = .draining }
        if let unsentSince, now - unsentSince >= Self.patience { state = .draining }
        // A server that allows no streams at all can allow some on another connection.
        if isIdle, session.maximumStreams == 0, now - lastSign >= Self.patience { state = .draining }
        guard !isIdle, now - lastSign >= Self.patience else { return }
        guard let pingedAt else {
            self.pingedAt = now
            attempt { () throws(HTTPError) in try session.ping() }
            return
        }
        if now - pingedAt >= Self.patience { state = .draining }
    }
}
