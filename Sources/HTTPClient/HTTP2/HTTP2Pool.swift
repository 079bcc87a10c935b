internal import Base

/// The connections to one host and port, and the requests that wait for a stream on one.
final class HTTP2Pool {
    let endpoint: Endpoint
    /// The endpoint's, which is made anew each time that it is read there.
    let authority: String
    var connections: [HTTP2Connection] = []
    private var waiting: [HTTPTransfer] = []
    private var waitingStart = 0
    /// No further connection is tried before this.
    private var pausedUntil: BootInstant?
    /// Until then the server is taken to speak HTTP/1.1 only.
    private var http1Until: BootInstant?

    /// After this time HTTP/2 is offered again.
    private static let memoryOfHTTP1 = Duration.seconds(600)
    /// The pause after a failed connection while others work.
    private static let pause = Duration.seconds(1)

    init(to endpoint: Endpoint) {
        self.endpoint = endpoint
        authority = endpoint.authority
    }

    func enqueue(_ transfer: HTTPTransfer) {
        waiting.append(transfer)
    }

    /// Waiting requests, with those that have ended since.
    var waitingCount: Int { waiting.count - waitingStart }

    func nextWaiting() -> HTTPTransfer? {
        while waitingStart < waiting.count {
            let transfer = waiting[waitingStart]
            waitingStart += 1
            if waitingStart == waiting.count {
                waiting.removeAll(keepingCapacity: true)
                waitingStart = 0
            }
            if transfer.result == nil { return transfer }
        }
        return nil
    }

    /// Forgets the waiting requests that have ended.
    func removeEnded() {
        waiting.removeFirst(waitingStart)
        waitingStart = 0
        waiting.removeAll { $0.result != nil }
    }

    func takeWaiting() -> [HTTPTransfer] {
        var taken: [HTTPTransfer] = []
        while let transfer = nextWaiting() { taken.append(transfer) }
        return taken
    }

    func speaksHTTP1(at now: BootInstant) -> Bool {
        guard let http1Until else { return false }
        return now < http1Until
    }

    func rememberHTTP1(at now: BootInstant) {
        http1Until = now + Self.memoryOfHTTP1
    }

    func pauseConnecting(at now: BootInstant) {
        pausedUntil = now + Self.pause
    }

    func mayConnect(at now: BootInstant) -> Bool {
        guard let pausedUntil else { return true }
        return now >= pausedUntil
    }

    /// Returns the number of connections to open, if those that are being made take as many requests as a connection
    /// can.
    static func connectionsToOpen(waiting: Int, connecting: Int, open: Int, limit: Int) -> Int {
        let wanted = (waiting + HTTP2Connection.maximumStreams - 1) / HTTP2Connection.maximumStreams - connecting
        return max(0, min(wanted, limit - connecting - open))
    }
}
