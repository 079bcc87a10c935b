internal import Base
private import Synchronization

/// One request on its way through the server, from its first line until its response is sent.
///
/// The connection's thread passes in what arrives and performs the steps that are returned. The handler's response
/// comes from another thread. The code that moves an exchange out of `waiting` also resumes the connection, under the
/// lock. A connection is therefore resumed exactly once, and a server that has locked each exchange in turn knows that
/// none stays suspended.
final class Exchange: Sendable {
    /// The next action of the connection's thread.
    enum Step {
        /// Read on.
        case proceed
        /// The request is complete: respond immediately, or keep it for the next call (``Exchange/keep(_:)``).
        case handle
        /// Pass the request to the handler, and suspend the connection while it runs.
        case wait(for: ServerRequest)
        /// Respond with the reason for the refusal. If `closing`, read nothing more on the connection, because the
        /// bytes that follow might be part of a disguised request.
        case refuse(RequestError, closing: Bool)
        /// End the request with this reply.
        case reply(ServerReply)
    }

    private enum Phase {
        /// The request line has been read. The headers come next, all at once.
        case head
        /// The body is being received, if there is one. Its end comes next.
        case body
        /// The request is complete and needs the handler. The suspension comes next.
        case complete(ServerRequest)
        /// The connection is suspended and the handler is running. Its reply or the server's end comes next.
        case waiting(MicroHTTPConnection, task: Task<Void, Never>?)
        /// The reply is ready, and the connection's thread is about to fetch it.
        case replied(ServerReply)
    }

    private struct State {
        var phase = Phase.head
        var headers: [ServerRequest.Field] = []
        var body: [UInt8] = []
        var received = 0
        /// The bytes reserved from the server's memory for the body, until the exchange ends.
        var reserved = 0
        var lacksMemory = false
        var isChunked = false
        var summary: RequestSummary
    }

    /// A body over the limit is read and discarded up to this multiple of the limit.
    ///
    /// Otherwise a client that is still sending would see the reset of a closed connection instead of the 413
    /// (https://www.rfc-editor.org/rfc/rfc9112#section-9.6).
    private static let discardFactor = 16

    let target: RequestTarget
    let client: ServerConnection
    let beganAt: BootInstant

    private let isLastByCount: Bool
    private let targetSize: Int
    private let limits: HTTPServer.Limits
    private let memory: RequestMemory
    private let state: Mutex<State>

    init(
        target: [UInt8],
        client: ServerConnection,
        id: String,
        limits: HTTPServer.Limits,
        memory: RequestMemory,
        isLast: Bool,
        at now: BootInstant
    ) {
        self.target = RequestTarget(target)
        self.client = client
        isLastByCount = isLast
        self.limits = limits
        self.memory = memory
        targetSize = target.count
        beganAt = now
        state = Mutex(State(summary: RequestSummary(id: id, address: client.address)))
    }

    /// The request's id in the log and in the response.
    var id: String { state.withLock { $0.summary.id } }

    /// `true` if the connection takes no further request.
    var isLast: Bool { isLastByCount || state.withLock { $0.isChunked } }

    /// Returns the address of the sender, from the forwarding headers if the peer is a trusted proxy.
    func clientAddress(trusting proxies: TrustedProxies) -> String {
        guard client.isTrustedProxy, let network = client.network else { return client.address }
        let headers = state.withLock { $0.headers }
        return proxies.client(
            behind: network,
            forwardedFor: headers.values("X-Forwarded-For"),
            forwarded: headers.values("Forwarded")
        ).description
    }

    /// Takes the request with its body out, for the handler.
    func takeRequest(clientAddress: String) -> ServerRequest {
        state.withLock { state in
            state.summary.address = clientAddress
            let body = state.body
            state.body = []
            let request = ServerRequest(
                method: state.summary.method,
                target: target,
                headers: state.headers,
                body: body,
                peerAddress: client.address,
                clientAddress: clientAddress,
                id: state.summary.id
            )
            if let trace = request.traceContext { state.summary.traceID = trace.traceID.text }
            return request
        }
    }

    /// Handles a call of the connection's thread, with bytes of the body or none.
    ///
    /// It is called once before the body, once or twice after it, and once when the connection is resumed.
    func advance(bytes: RawSpan, method: () -> String, head: () -> RequestHead) -> Step {
        state.withLock { state in
            switch state.phase {
            case .head:
                state.phase = .body
                state.summary.method = method()
                return receive(head(), in: &state)
            case .body where !bytes.isEmpty:
                return receive(bytes, in: &state)
            case .body:
                guard state.received <= limits.bodyBytes else { return .refuse(.bodyTooLarge, closing: false) }
                return state.lacksMemory ? .refuse(.outOfMemory, closing: true) : .handle
            case .complete(let request):
                return .wait(for: request)
            case .waiting:
                // A suspended connection is not called. If it were, there would be nothing to send yet.
                return .proceed
            case .replied(let reply):
                return .reply(reply)
            }
        }
    }

    private func receive(_ head: RequestHead, in state: inout State) -> Step {
        state.headers = head.headers
        state.isChunked = head.isChunked
        if client.isTrustedProxy, let id = ServerRequest.forwardedID(in: head.headers) { state.summary.id = id }
        if targetSize > limits.targetBytes { return .refuse(.targetTooLong, closing: true) }
        if let refusal = head.refusal(maximumSize: limits.headBytes, targetSize: targetSize) {
            return .refuse(refusal, closing: true)
        }
        guard target.isPath else { return .refuse(.malformed("the target is not a path"), closing: true) }
        return refusesBody(announcedBy: head) ? .refuse(.bodyTooLarge, closing: false) : .proceed
    }

    /// Returns `true` if a body is refused before it arrives: it is far too large, or the client waits for permission.
    private func refusesBody(announcedBy head: RequestHead) -> Bool {
        guard let length = head.declaredLength, length > limits.bodyBytes else { return false }
        let isFarTooLarge = length / Self.discardFactor > limits.bodyBytes
        return isFarTooLarge || head.expectsContinue
    }

    private func receive(_ bytes: RawSpan, in state: inout State) -> Step {
        state.received += bytes.byteCount
        guard state.received <= limits.bodyBytes else {
            discardBody(&state)
            return state.received / Self.discardFactor > limits.bodyBytes ? .reply(.drop) : .proceed
        }
        guard !state.lacksMemory else { return .proceed }
        guard memory.reserve(bytes.byteCount, alreadyReserved: state.reserved) else {
            discardBody(&state)
            state.lacksMemory = true
            return .proceed
        }
        state.reserved += bytes.byteCount
        unsafe bytes.withUnsafeBytes { unsafe state.body.append(contentsOf: $0) }
        return .proceed
    }

    private func discardBody(_ state: inout State) {
        state.body = []
        memory.release(state.reserved)
        state.reserved = 0
    }

    /// Releases the body's memory when the exchange is over.
    ///
    /// Until then the handler can hold the body.
    func releaseMemory() {
        state.withLock { discardBody(&$0) }
    }

    /// Records the response that is being sent.
    func recordResponse(_ response: ServerResponse) {
        state.withLock { state in
            state.summary.status = response.status
            state.summary.route = response.route
            state.summary.bytes = response.body.count
        }
    }

    /// Returns the log entry of the finished exchange.
    func summary(at now: BootInstant) -> RequestSummary {
        state.withLock { state in
            state.summary.duration = now - beganAt
            return state.summary
        }
    }

    /// Keeps a request that needs the handler until the connection's thread calls again, which it does at once.
    ///
    /// The connection must not be suspended earlier. libmicrohttpd 0.9.75 updates a connection's event mask only at the
    /// end of a round, and not while it is suspended. If a connection is suspended in the round that read its request,
    /// it is read again when it is resumed, before its handler is called. A client that has closed its sending side by
    /// then would not get a response (call_handlers in
    /// https://github.com/Karlson2k/libmicrohttpd/blob/v0.9.75/src/microhttpd/daemon.c).
    func keep(_ request: ServerRequest) {
        state.withLock { $0.phase = .complete(request) }
    }

    /// Records that the connection is suspended until the handler replies.
    func wait(on connection: MicroHTTPConnection) {
        state.withLock { $0.phase = .waiting(connection, task: nil) }
    }

    /// Records the task that runs the handler.
    ///
    /// It is cancelled once its reply is not needed any more.
    func attach(_ task: Task<Void, Never>) {
        state.withLock { state in
            if case .waiting(let connection, task: _) = state.phase { state.phase = .waiting(connection, task: task) }
        }
    }

    /// Accepts the handler's reply, and ignores it if the server has closed the connection since then.
    func complete(with reply: ServerReply) {
        state.withLock { state in
            guard case .waiting(let connection, task: _) = state.phase else { return }
            state.phase = .replied(reply)
            connection.resume()
        }
    }

    /// Ends the wait for the handler without a response.
    func abandon() {
        let task: Task<Void, Never>? = state.withLock { state in
            guard case .waiting(let connection, let task) = state.phase else { return nil }
            state.phase = .replied(.drop)
            connection.resume()
            return task
        }
        task?.cancel()
    }

    /// Cancels the handler's task because the connection is lost.
    ///
    /// The handler can still reply.
    func cancelHandler() {
        let task: Task<Void, Never>? = state.withLock { state in
            guard case .waiting(_, let task) = state.phase else { return nil }
            return task
        }
        task?.cancel()
    }

    /// The socket of a client that waits for the handler.
    var waitingSocket: Int32? {
        state.withLock { state in
            guard case .waiting(let connection, task: _) = state.phase else { return nil }
            return connection.socket
        }
    }
}
