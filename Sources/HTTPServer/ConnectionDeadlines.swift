internal import Clocks

/// The time limits for each part of a request.
package struct ConnectionDeadlines: Sendable {
    /// The time from a request's first byte to the end of its headers.
    ///
    /// The first request includes the TLS handshake.
    package var head: Duration

    /// The time from a request's first byte to the end of its body.
    package var request: Duration

    /// The time that the client may take to receive a response.
    package var answer: Duration

    /// The time between two requests, while connections are not scarce.
    package var idle: Duration

    package init(
        head: Duration = .seconds(10),
        request: Duration = .seconds(30),
        answer: Duration = .seconds(30),
        idle: Duration = .seconds(60)
    ) {
        self.head = head
        self.request = request
        self.answer = answer
        self.idle = idle
    }

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

/// The current activity of a client and its start.
///
/// It decides whether the client has taken too long.
struct ClientPhase: Equatable {
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
        case answering
        /// The server has given up on the client.
        case over
    }

    /// The action for a client that has taken too long.
    enum Verdict {
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

    /// Moves to another phase; returns `false` if the server has already given up on the client.
    mutating func move(to next: Kind, at now: BootInstant) -> Bool {
        guard kind != .over else { return false }
        // The limit for a body counts from its request's first byte.
        if !(kind == .head && (next == .body || next == .head)) { since = now }
        kind = next
        return true
    }

    /// Checks the client.
    ///
    /// It is called regularly, because libmicrohttpd reports a request only after it has read the first line.
    mutating func look(
        at now: BootInstant,
        received: () -> UInt64?,
        deadlines: ConnectionDeadlines,
        idle: Duration
    ) -> Verdict? {
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
        case .answering: return end(.close, after: deadlines.answer, now)
        case .handling, .over: return nil
        }
    }

    private mutating func end(_ verdict: Verdict, after span: Duration, _ now: BootInstant) -> Verdict? {
        guard now - since >= span else { return nil }
        kind = .over
        return verdict
    }
}
