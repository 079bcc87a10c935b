private import Dispatch
private import Glibc
private import Synchronization

/// The requests that have begun and are not wholly answered.
///
/// It watches the clients that wait for the handler, which libmicrohttpd does not do while a connection is suspended, and
/// tells the server's end when the last answer is out.
final class OpenExchanges: Sendable {
    private struct State {
        var open: [ObjectIdentifier: Exchange] = [:]
        var isWatching = false
        var isClosing = false
        /// No new request may wait any more.
        var isOver = false
        var whenDrained: CheckedContinuation<Void, Never>?
    }

    private static let watchInterval = DispatchTimeInterval.milliseconds(250)

    private let state = Mutex(State())
    private let watch = DispatchQueue(label: "http-server.watch")

    var count: Int { state.withLock { $0.open.count } }

    /// The server is about to end: answers tell their clients to open no further request on the connection.
    var areClosing: Bool { state.withLock { $0.isClosing } }

    func insert(_ exchange: Exchange) {
        state.withLock { $0.open[ObjectIdentifier(exchange)] = exchange }
    }

    func remove(_ exchange: Exchange) {
        let drained = state.withLock { state in
            state.open[ObjectIdentifier(exchange)] = nil
            return state.open.isEmpty ? state.whenDrained.take() : nil
        }
        drained?.resume()
    }

    /// Whether a request may wait for the handler; the caller has suspended its connection already, and resumes it if not.
    func mayWait() -> Bool {
        let (isOver, startsWatching) = state.withLock { state in
            defer { state.isWatching = state.isWatching || !state.isOver }
            return (state.isOver, !state.isWatching && !state.isOver)
        }
        if startsWatching { scheduleWatch() }
        return !isOver
    }

    /// Returns when no request is open, or when that time is over.
    func drained(within grace: Duration) async {
        await withCheckedContinuation { continuation in
            let isDrained = state.withLock { state in
                state.isClosing = true
                if !state.open.isEmpty { state.whenDrained = continuation }
                return state.open.isEmpty
            }
            if isDrained { return continuation.resume() }
            let (seconds, attoseconds) = grace.components
            let deadline = DispatchTime.now() + Double(seconds) + Double(attoseconds) / 1e18
            DispatchQueue.global().asyncAfter(deadline: deadline) { [self] in
                state.withLock { $0.whenDrained.take() }?.resume()
            }
        }
    }

    /// Ends every wait for the handler; from now on none begins.
    func abandonAll() {
        let open = state.withLock { state in
            state.isOver = true
            return Array(state.open.values)
        }
        for exchange in open { exchange.abandon() }
    }

    private func scheduleWatch() {
        watch.asyncAfter(deadline: .now() + Self.watchInterval) { [self] in
            let open = state.withLock { Array($0.open.values) }
            for exchange in Self.hungUp(among: open) { exchange.tellHandlerOfHangUp() }
            let goesOn = state.withLock { state in
                state.isWatching = !state.open.isEmpty && !state.isOver
                return state.isWatching
            }
            if goesOn { scheduleWatch() }
        }
    }

    /// The exchanges whose connection is lost.
    ///
    /// A client that has closed its sending side still reads, and one that has closed its socket looks the same until it
    /// is written to. Both get their answer.
    ///
    /// A socket may be closed, and its number given to another client, between the two steps here. Then its exchange is
    /// answered already and being told of a hang-up does nothing to it.
    private static func hungUp(among exchanges: [Exchange]) -> [Exchange] {
        let hungUp = Int16(POLLHUP | POLLERR)
        var waiting: [Exchange] = []
        var sockets: [pollfd] = []
        for exchange in exchanges {
            guard let socket = exchange.waitingSocket else { continue }
            waiting.append(exchange)
            sockets.append(pollfd(fd: socket, events: 0, revents: 0))
        }
        guard unsafe poll(&sockets, nfds_t(sockets.count), 0) > 0 else { return [] }
        return zip(waiting, sockets).filter { $0.1.revents & hungUp != 0 }.map(\.0)
    }
}
