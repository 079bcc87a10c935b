internal import Base

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
            return end(.close, after: idle, at: now)
        case .head: return end(.timeOut, after: deadlines.head, at: now)
        case .body: return end(.timeOut, after: deadlines.request, at: now)
        case .responding: return end(.close, after: deadlines.response, at: now)
        case .handling, .ended: return nil
        }
    }

    private mutating func end(_ action: Action, after span: Duration, at now: BootInstant) -> Action? {
        guard now - since >= span else { return nil }
        kind = .ended
        return action
    }
}
