private import Synchronization

/// One request on its way through the server, from its first line until its answer is sent.
///
/// The connection's thread feeds it what arrives and does what it says; the handler's answer comes from elsewhere. Whoever
/// moves it out of `waiting` resumes the connection, under the lock: so a connection is resumed exactly once, and a server
/// that has locked each exchange in turn knows that none is left suspended.
final class Exchange: Sendable {
    /// What the connection's thread does next.
    enum Step {
        /// Read on.
        case proceed
        /// Suspend the connection and hand the request to the handler.
        case ask
        /// Finish with this.
        case reply(ServerReply)
    }

    private enum Phase {
        /// The request line has been read; next are the headers, in one piece.
        case head
        /// The body is coming in, if there is one; next is its end.
        case body
        /// The connection is suspended and the handler at work; next is its answer, or the server's end.
        case waiting(Connection, work: Task<Void, Never>?)
        /// The answer is here and the connection's thread about to fetch it.
        case answered(ServerReply)
    }

    private struct State {
        var phase = Phase.head
        var body: [UInt8] = []
        var received = 0
    }

    /// A body over the limit is read on and forgotten up to this many times the limit: a client that is still sending reads
    /// the reset of a closed connection, not the 413 (https://www.rfc-editor.org/rfc/rfc9112#section-9.6).
    private static let patience = 16

    let target: RequestTarget
    private let maximumBodyBytes: Int
    private let state = Mutex(State())

    init(target: RequestTarget, maximumBodyBytes: Int) {
        self.target = target
        self.maximumBodyBytes = maximumBodyBytes
    }

    /// Takes the body so far out, for the request that the handler gets.
    func takeBody() -> [UInt8] {
        state.withLock { state in
            let body = state.body
            state.body = []
            return body
        }
    }

    /// The connection's thread has called, with bytes of the body or with none; it calls once before the body, once after
    /// it, and once when the connection is resumed.
    func turn(bytes: RawSpan, declaredLength: @autoclosure () -> Int?, expectsContinue: @autoclosure () -> Bool) -> Step
    {
        state.withLock { state in
            switch state.phase {
            case .head:
                state.phase = .body
                let declared = declaredLength() ?? 0
                let isHopeless = declared > maximumBodyBytes * Self.patience
                return isHopeless || declared > maximumBodyBytes && expectsContinue() ? .reply(Self.tooLarge) : .proceed
            case .body where !bytes.isEmpty:
                return receive(bytes, &state)
            case .body:
                return state.received > maximumBodyBytes ? .reply(Self.tooLarge) : .ask
            case .waiting:
                // A suspended connection is not called; were it, there would be nothing to send yet.
                return .proceed
            case .answered(let reply):
                return .reply(reply)
            }
        }
    }

    private func receive(_ bytes: RawSpan, _ state: inout State) -> Step {
        state.received += bytes.byteCount
        guard state.received <= maximumBodyBytes else {
            state.body = []
            return state.received > maximumBodyBytes * Self.patience ? .reply(.drop) : .proceed
        }
        unsafe bytes.withUnsafeBytes { unsafe state.body.append(contentsOf: $0) }
        return .proceed
    }

    private static var tooLarge: ServerReply { .respond(.text("body too large\n", status: 413)) }

    /// The connection has been suspended for the handler's answer.
    func wait(on connection: Connection) {
        state.withLock { $0.phase = .waiting(connection, work: nil) }
    }

    /// The handler runs in this task, which is cancelled when nobody waits for its answer any more.
    func follow(_ work: Task<Void, Never>) {
        state.withLock { state in
            if case .waiting(let connection, work: _) = state.phase { state.phase = .waiting(connection, work: work) }
        }
    }

    /// The handler's answer; too late, and forgotten, if the server has closed the connection meanwhile.
    func answer(_ reply: ServerReply) {
        state.withLock { state in
            guard case .waiting(let connection, work: _) = state.phase else { return }
            state.phase = .answered(reply)
            connection.resume()
        }
    }

    /// Ends the wait for the handler without an answer.
    func abandon() {
        let work: Task<Void, Never>? = state.withLock { state in
            guard case .waiting(let connection, let work) = state.phase else { return nil }
            state.phase = .answered(.drop)
            connection.resume()
            return work
        }
        work?.cancel()
    }

    /// The client has hung up: the handler is told by cancellation, and may answer all the same.
    func tellHandlerOfHangUp() {
        let work: Task<Void, Never>? = state.withLock { state in
            guard case .waiting(_, let work) = state.phase else { return nil }
            return work
        }
        work?.cancel()
    }

    /// The socket of a client that waits for the handler.
    var waitingSocket: Int32? {
        state.withLock { state in
            guard case .waiting(let connection, work: _) = state.phase else { return nil }
            return connection.socket
        }
    }
}
