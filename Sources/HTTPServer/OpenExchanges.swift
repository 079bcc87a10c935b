private import Dispatch
private import Glibc
private import Synchronization

/// The requests that have begun and are not completely answered.
///
/// It monitors the clients that wait for the handler, because libmicrohttpd does not do so while a connection is
/// suspended. It also notifies the server's shutdown when the last response is sent.
final class OpenExchanges: Sendable {
    private struct State {
        var open: [ObjectIdentifier: Exchange] = [:]
        var isMonitoring = false
        var isClosing = false
        /// `true` once new requests can no longer wait.
        var isEnded = false
        var whenDrained: CheckedContinuation<Void, Never>?
    }

    private static let checkInterval = DispatchTimeInterval.milliseconds(250)

    private let state = Mutex(State())
    private let monitorQueue = DispatchQueue(label: "http-server.exchanges")

    var count: Int { state.withLock { $0.open.count } }

    /// `true` if the server is stopping: each response then closes its connection.
    var isClosing: Bool { state.withLock { $0.isClosing } }

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

    /// Returns `true` if a request can wait for the handler.
    ///
    /// The caller has already suspended its connection, and resumes it otherwise.
    func mayWait() -> Bool {
        let (isEnded, startsMonitoring) = state.withLock { state in
            defer { state.isMonitoring = state.isMonitoring || !state.isEnded }
            return (state.isEnded, !state.isMonitoring && !state.isEnded)
        }
        if startsMonitoring { scheduleCheck() }
        return !isEnded
    }

    /// Returns when no request is open, or when the grace period is over.
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

    /// Ends every wait for the handler and prevents new ones.
    func abandonAll() {
        let open = state.withLock { state in
            state.isEnded = true
            return Array(state.open.values)
        }
        for exchange in open { exchange.abandon() }
    }

    private func scheduleCheck() {
        monitorQueue.asyncAfter(deadline: .now() + Self.checkInterval) { [self] in
            let open = state.withLock { Array($0.open.values) }
            for exchange in Self.disconnected(among: open) { exchange.cancelHandler() }
            let continues = state.withLock { state in
                state.isMonitoring = !state.open.isEmpty && !state.isEnded
                return state.isMonitoring
            }
            if continues { scheduleCheck() }
        }
    }

    /// Returns the exchanges whose connection is lost.
    ///
    /// A client that has closed its sending side still reads, and one that has closed its socket cannot be
    /// distinguished from it until something is written. Both get their response.
    ///
    /// Between the two steps here a socket can be closed and its number given to another client. Then its exchange
    /// already has its response, and the cancellation has no effect.
    private static func disconnected(among exchanges: [Exchange]) -> [Exchange] {
        let lost = Int16(POLLHUP | POLLERR)
        var waiting: [Exchange] = []
        var sockets: [pollfd] = []
        for exchange in exchanges {
            guard let socket = exchange.waitingSocket else { continue }
            waiting.append(exchange)
            sockets.append(pollfd(fd: socket, events: 0, revents: 0))
        }
        guard unsafe poll(&sockets, nfds_t(sockets.count), 0) > 0 else { return [] }
        return zip(waiting, sockets).filter { $0.1.revents & lost != 0 }.map(\.0)
    }
}
