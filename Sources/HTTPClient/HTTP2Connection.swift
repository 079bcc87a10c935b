internal import Base
internal import CCurl

/// One connection that speaks HTTP/2: the bytes of a ``TLSConnection``, framed by a session.
final class HTTP2Connection {
    enum State {
        case connecting
        case open
        /// No request may begin on the connection; those that did may still end.
        case draining
    }

    let tls: TLSConnection
    private let session: HTTP2Session
    private let input: InputBuffer
    private(set) var state = State.connecting
    /// The reason why the connection is lost.
    private(set) var loss: HTTPFailure?
    /// `true` until the first request begins.
    private(set) var isUnused = true
    /// `true` if the last round read as much as it may, so that more may be left.
    private(set) var hasMoreInput = false
    /// `true` if the socket was readable or writable after the last wait.
    var isReady = false
    /// The time of the last sign of life: bytes from the server, or the first request after a pause.
    private var lastSign = BootInstant(milliseconds: 0)
    private var pingedAt: BootInstant?
    /// The time since which output waits for a server that does not read.
    private var unsentSince: BootInstant?
    /// The bytes from the server since the last request ended.
    private var unaskedBytes = 0

    /// The most requests on one connection at a time, also if the server allows more.
    static let maximumStreams = 100
    /// The most reads of one round, so that one server cannot hold up all others.
    private static let maximumReadsPerRound = 32
    /// The read limit before closing, when unread data would be lost.
    ///
    /// It is larger than the flow-control windows, so it never cuts a response off.
    private static let maximumReadsAtTheEnd = 1024
    /// The most bytes that a server may send while no request is open.
    private static let maximumUnaskedBytes = 1_048_576
    /// The time without a sign of life after which the server is asked for one, and then given up.
    private static let patience = Duration.seconds(5)

    init(
        to endpoint: Endpoint,
        configuration: HTTPClient.Configuration,
        userAgent: HTTP2Fields,
        input: InputBuffer
    ) throws(HTTPFailure) {
        tls = try TLSConnection(to: endpoint, configuration: configuration)
        session = try HTTP2Session(limits: configuration.limits, userAgent: userAgent)
        self.input = input
    }

    func establish(at now: BootInstant) throws(HTTPFailure) {
        try tls.establish()
        lastSign = now
        state = .open
        // Settings that arrived with the end of the handshake were read ahead: the socket will not become readable.
        isReady = true
    }
}

// MARK: - Requests

extension HTTP2Connection {
    /// The number of requests that may begin now.
    var freeStreams: Int {
        guard state == .open, loss == nil, !session.hasUnsentOutput, session.takesRequests else { return 0 }
        return max(0, min(Self.maximumStreams, session.maximumStreams) - session.openStreams)
    }

    var isIdle: Bool { session.openStreams == 0 }

    /// `true` if the connection can be closed without loss: the session has ended, or nothing is left to wait for.
    var isOver: Bool { state != .connecting && (session.isOver || state == .draining && session.unfinished.isEmpty) }

    /// Begins a request, which ``flush(at:)`` sends; returns `false` if the connection cannot take it.
    func begin(_ transfer: HTTPTransfer, at now: BootInstant) -> Bool {
        if isIdle { lastSign = now }
        attempt { () throws(HTTPFailure) in try session.submit(transfer) }
        guard loss == nil else { return false }
        transfer.http2 = self
        transfer.issue()
        if isUnused { transfer.opensConnection = true }
        isUnused = false
        unaskedBytes = 0
        return true
    }

    /// Ends a request before its response is complete; ``flush(at:)`` notifies the server.
    func cancel(_ transfer: HTTPTransfer) {
        attempt { () throws(HTTPFailure) in try session.cancel(transfer) }
    }

    func takeEnded() -> [HTTPTransfer] { session.takeEnded() }

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
        do throws(HTTPFailure) {
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
        // The server may have responded before it closed the connection.
        receive(at: now, isLast: true)
        lose(.sendFailed, code: failure, "the connection was lost: \(tls.message(code: failure))")
    }

    /// Reads what has arrived; `isLast` if a response that is not read now would be lost.
    ///
    /// It must read until nothing is left before the loop waits for the socket: one `recv` brings more than one record.
    func receive(at now: BootInstant, isLast: Bool = false) {
        hasMoreInput = false
        for _ in 0..<(isLast ? Self.maximumReadsAtTheEnd : Self.maximumReadsPerRound) where loss == nil {
            switch unsafe tls.receive(into: input.bytes) {
            case .moved(let count):
                lastSign = now
                pingedAt = nil
                noteUnasked(count)
                input.use(count) { bytes in attempt { () throws(HTTPFailure) in try session.receive(bytes) } }
            case .wouldBlock:
                return
            case .closed:
                return lose(.receiveFailed, "the server closed the connection before the response was complete")
            case .failed(let code):
                let kind = HTTPFailure.Kind(curlCode: code, requestIssued: true)
                return lose(kind, code: code, tls.message(code: code))
            }
        }
        hasMoreInput = loss == nil
    }

    private func noteUnasked(_ count: Int) {
        guard isIdle else { return }
        unaskedBytes += count
        if unaskedBytes > Self.maximumUnaskedBytes {
            lose(.receiveFailed, "the server sent data although no request was open")
        }
    }

    private func attempt(_ call: () throws(HTTPFailure) -> Void) {
        do throws(HTTPFailure) {
            try call()
        } catch {
            lose(.receiveFailed, "HTTP/2 failed: \(error.message)")
        }
    }

    private func lose(_ kind: HTTPFailure.Kind, code: UInt32? = nil, _ message: String) {
        loss = loss ?? HTTPFailure(kind: kind, code: code.map { Int($0) }, message: message)
    }
}

// MARK: - Signs of life

extension HTTP2Connection {
    /// Stops the use of a connection whose server has ended it, or does not even answer a PING while requests wait.
    ///
    /// Requests in flight may still get their responses until their deadlines.
    func checkLife(at now: BootInstant) {
        guard state == .open else { return }
        if !session.takesRequests { state = .draining }
        if let unsentSince, now - unsentSince >= Self.patience { state = .draining }
        // A server that allows no streams at all may allow some on another connection.
        if isIdle, session.maximumStreams == 0, now - lastSign >= Self.patience { state = .draining }
        guard !isIdle, now - lastSign >= Self.patience else { return }
        guard let pingedAt else {
            self.pingedAt = now
            attempt { () throws(HTTPFailure) in try session.ping() }
            return
        }
        if now - pingedAt >= Self.patience { state = .draining }
    }
}

/// A TLS connection that libcurl makes, and that then carries bytes instead of libcurl's transfers.
///
/// Names, addresses, proxies, the handshake and the verification of the certificate are libcurl's work
/// (https://curl.se/libcurl/c/CURLOPT_CONNECT_ONLY.html). The handle stays in the multi handle, which owns the
/// connection, until the transport removes it.
@safe
final class TLSConnection: EasyHandle {
    /// The result of reading or writing, without waiting.
    enum Step {
        /// The number of bytes.
        case moved(Int)
        case wouldBlock
        /// The server closed the connection.
        case closed
        /// libcurl's code.
        case failed(UInt32)
    }

    /// `true` if the handshake agreed on HTTP/2; `false` ends the connection.
    private(set) var isHTTP2: Bool?
    /// The socket of the established connection.
    private(set) var socket: Int32 = -1

    /// Prepares a connection to the host and port of an endpoint.
    init(to endpoint: Endpoint, configuration: HTTPClient.Configuration) throws(HTTPFailure) {
        try super.init(configuration: configuration)
        try setConnectionOptions(for: endpoint)
        try set(CURLOPT_URL, "https://\(endpoint.authority)/")
        try set(CURLOPT_CONNECT_ONLY, 1)
        // HTTP/1.1, so that libcurl does not treat the connection as one that its own transfers may share.
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        try set(CURLOPT_SSL_ENABLE_ALPN, 0)
        try check(unsafe ccurl_easy_offer_http2(easy))
        try check(unsafe ccurl_easy_set_prerequest(easy, Self.handshakeEnded))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PREREQDATA, context))
        let limit = configuration.connectDeadline.wholeMilliseconds.clamped(to: 1...Int64(Int32.max))
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(limit))
    }

    /// Finds the socket of the connection that is now established.
    func establish() throws(HTTPFailure) {
        try check(unsafe ccurl_easy_get_socket(easy, &socket))
        guard socket >= 0 else { throw HTTPFailure(kind: .connect, message: "libcurl closed the new connection") }
    }

    func send(_ bytes: RawSpan) -> Step {
        var count = 0
        let result = unsafe bytes.withUnsafeBytes { bytes in
            unsafe curl_easy_send(easy, bytes.baseAddress, bytes.count, &count)
        }
        return step(result, count: count)
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Step {
        var count = 0
        let result = unsafe curl_easy_recv(easy, buffer.baseAddress, buffer.count, &count)
        return step(result, count: count)
    }

    private func step(_ result: CURLcode, count: Int) -> Step {
        switch result {
        case CURLE_OK: count > 0 ? .moved(count) : .closed
        case CURLE_AGAIN: .wouldBlock
        default: .failed(result.rawValue)
        }
    }

    private static let handshakeEnded: curl_prereq_callback = { context, _, _, _, _ in
        guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
        let connection = unsafe Unmanaged<TLSConnection>.fromOpaque(context).takeUnretainedValue()
        let isHTTP2 = unsafe ccurl_connection_is_http2(connection.easy) == 1
        connection.isHTTP2 = isHTTP2
        guard isHTTP2 else { return CURL_PREREQFUNC_ABORT }
        // Later, libcurl no longer says which connection belongs to the handle.
        let isBuffered = unsafe ccurl_connection_buffer_input(connection.easy) == CURLE_OK
        return isBuffered ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }
}
