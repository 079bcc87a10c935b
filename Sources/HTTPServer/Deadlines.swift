internal import Clocks

/// How long a client may take over each part of what it does.
package struct Deadlines: Sendable {
    /// From a request's first byte to the end of its headers; the TLS handshake belongs to the first request.
    package var head: Duration

    /// From a request's first byte to the end of its body.
    package var request: Duration

    /// To take an answer.
    package var answer: Duration

    /// Between two requests, while there are connections to spare.
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

    /// How long a connection may lie idle when so many of the greatest number are open.
    ///
    /// At that number no further client is let in, so idle connections have to go before it is reached: from three quarters
    /// on they get less and less time, down to a second.
    func idle(open: Int, of maximum: Int) -> Duration {
        let free = max(0, maximum - open)
        let ample = max(1, maximum / 4)
        return free >= ample ? idle : max(.seconds(1), idle * free / ample)
    }
}

/// What a client is at, and since when: it decides whether the client has taken too long.
struct ClientPhase: Equatable {
    enum Kind: Equatable {
        /// Between requests. The number of bytes that had come when that was last looked at, where it was.
        case idle(received: UInt64?)
        /// Bytes of a head have come, and not all of it.
        case head
        /// The head is complete and the body is not.
        case body
        /// The request is complete and the handler at work.
        case handling
        /// The answer is on its way.
        case answering
        /// The server has given up on the client.
        case over
    }

    /// What is to be done about a client that has taken too long.
    enum Verdict {
        case close
        /// No answer has begun, so one may say why: 408.
        case timeOut
    }

    private(set) var kind: Kind
    private(set) var since: BootInstant

    init(connectedAt now: BootInstant) {
        // Nothing can have been read of a connection that is new.
        kind = .idle(received: 0)
        since = now
    }

    /// The client has come to something else; false if the server has given up on it before.
    mutating func move(to next: Kind, at now: BootInstant) -> Bool {
        guard kind != .over else { return false }
        // A body counts from its request's first byte.
        if !(kind == .head && (next == .body || next == .head)) { since = now }
        kind = next
        return true
    }

    /// Looks at the client now and then, because libmicrohttpd tells of a request only when it has read its first line.
    mutating func look(
        at now: BootInstant,
        received: () -> UInt64?,
        deadlines: Deadlines,
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
