internal import Base

/// The loop of the client's thread: it takes commands, starts and ends requests, and waits for sockets.
///
/// ``HTTP2Transport`` carries the requests that it accepts, an ``HTTP1Connection`` each of the others. The loop drives
/// libcurl with `curl_multi_perform` and `curl_multi_poll`.
final class TransferLoop {
    /// A bound on the delay after the machine slept, which also shows a watchdog that the loop runs.
    private static let maximumWait = Duration.seconds(1)

    /// The limit of reads before requests end: a server that floods the client must not keep it from the others.
    private static let maximumReads = 64

    private let commands: TransferCommands
    private let multi: MultiHandle
    private let configuration: HTTPClient.Configuration
    private let time: any TimeSource

    private var queue: TransferQueue
    private let http2: HTTP2Transport
    private var ended: [HTTPTransfer] = []
    /// The requests that are cancelled once all sockets were read.
    private var cancelled: [HTTPTransfer] = []
    private var counters = HTTPClient.Counters()

    init(
        commands: TransferCommands,
        multi: MultiHandle,
        configuration: HTTPClient.Configuration,
        time: any TimeSource
    ) {
        self.commands = commands
        self.multi = multi
        self.configuration = configuration
        self.time = time
        queue = TransferQueue(maximumInFlight: configuration.maximumInFlight)
        http2 = HTTP2Transport(configuration: configuration, time: time, multi: multi)
    }

    /// Runs until the queue of commands is closed.
    ///
    /// By then every request has its response or failure.
    func run() {
        while executeCommands() {
            startQueued()
            runRound()
        }
        // The only copy of a new refresh token might be waiting in a socket.
        http2.receive(isLast: true)
        endFinished(of: http2)
        for transfer in queue.all { fail(transfer, as: .shutDown, "the HTTP client was shut down") }
        completeEnded()
        http2.close()
        commands.releaseHandle()
    }

    /// Executes the queued commands, and returns `false` once the queue is closed.
    private func executeCommands() -> Bool {
        let taken = commands.take()
        counters.requests += taken.submitted.count
        for transfer in taken.submitted { queue.submit(transfer) }
        cancelled += taken.cancelled
        return !taken.isClosed
    }

    private func startQueued() {
        while let transfer = queue.startNext() {
            if !http2.accept(transfer) { startOverHTTP1(transfer) }
        }
    }

    /// Starts a request on a connection of its own, after the last checks that can prevent it.
    private func startOverHTTP1(_ transfer: HTTPTransfer) {
        do throws(HTTPError) {
            try transfer.checkBeforeSending(time)
            let now = time.sinceBoot
            transfer.startedAt = now
            let connection = try HTTP1Connection(for: transfer, configuration: configuration, time: time, at: now)
            try multi.add(connection)
            transfer.http1 = connection
        } catch {
            end(transfer, with: .failure(error))
        }
    }

    private func runRound() {
        let now = time.sinceBoot
        var failure: HTTPError?
        do throws(HTTPError) {
            try multi.perform()
            if !cancelled.isEmpty || queue.hasExpired(at: now) { try readWaitingResponses() }
        } catch {
            failure = error
        }
        // A request that ended before libcurl failed keeps its response.
        endFinished()
        for transfer in http2.takeTransfersForHTTP1() { startOverHTTP1(transfer) }
        // The multi handle itself failed, usually because memory ran out: none of its transfers can continue.
        if let failure {
            for transfer in queue.all where transfer.http1 != nil { fail(transfer, as: .other, failure.message) }
        }
        // After a failure, the loop did not learn which sockets are ready.
        http2.receive(isLast: failure != nil || !cancelled.isEmpty || queue.hasExpired(at: now))
        endFinished(of: http2)
        // Requests end after all sockets were read. If the process was stopped past a deadline, the response, with the
        // only copy of a new refresh token, might be waiting in its socket. They end before more is sent: the lease of
        // a request that is still waiting might be over.
        for transfer in cancelled { fail(transfer, as: .cancelled, "the request was cancelled") }
        cancelled.removeAll(keepingCapacity: true)
        for transfer in queue.expired(at: now) { end(transfer, with: .failure(transfer.expiry(at: time.sinceBoot))) }
        http2.send()
        endFinished(of: http2)
        counters.rounds += 1
        completeEnded()
        wait(failure)
    }

    /// Lets libcurl read the responses that have arrived, before requests end: in each round it reads at most one TLS
    /// record of a connection, and a response has several.
    private func readWaitingResponses() throws(HTTPError) {
        for _ in 0..<Self.maximumReads {
            guard try multi.hasReadySocket() else { return }
            try multi.perform()
        }
    }

    private func wait(_ failure: HTTPError?) {
        do throws(HTTPError) {
            if let failure { throw failure }
            let span = http2.hasMoreWork ? .zero : queue.waitTime(at: time.sinceBoot, limit: Self.maximumWait)
            var sockets = http2.sockets()
            try multi.wait(milliseconds: Int32(span.wholeMilliseconds), for: &sockets)
            http2.noteReady(sockets)
        } catch {
            // Keeps the thread from spinning until the machine has recovered. A failed wait does not end any transfer.
            SystemTime.blockThread(for: .milliseconds(100))
        }
    }

    private func endFinished() {
        while let (handle, code) = multi.nextEnded() {
            if let connection = handle as? TLSConnection { http2.endConnecting(connection, code: code) }
            guard let connection = handle as? HTTP1Connection else { continue }
            end(connection.transfer, with: connection.result(code: code))
        }
    }

    private func endFinished(of http2: HTTP2Transport) {
        for transfer in http2.takeEnded() { end(transfer) }
    }

    /// Ends a waiting or in-flight request with a failure, and does nothing if it has not begun or has already ended.
    private func fail(_ transfer: HTTPTransfer, as kind: HTTPError.Kind, _ message: String) {
        guard transfer.stage == .waiting || transfer.stage == .inFlight else { return }
        end(transfer, with: .failure(transfer.failure(kind, message)))
    }

    private func end(_ transfer: HTTPTransfer, with result: Result<HTTPResponse, HTTPError>) {
        transfer.end(result)
        end(transfer)
    }

    /// Counts a request that has its result.
    ///
    /// Its caller gets it at the end of the round.
    private func end(_ transfer: HTTPTransfer) {
        guard let result = transfer.result, transfer.stage != .ended else { return }
        queue.remove(transfer)
        if let connection = transfer.http1 { multi.remove(connection) }
        transfer.http1 = nil
        transfer.http2?.cancel(transfer)
        transfer.http2 = nil
        if transfer.opensConnection { counters.newConnections += 1 }
        switch result {
        case .success(let response):
            counters.completed += 1
            if !response.newConnection { counters.reusedConnections += 1 }
        case .failure:
            counters.failed += 1
        }
        ended.append(transfer)
    }

    /// Publishes the counters, then calls the completions, which might read them.
    private func completeEnded() {
        counters.waiting = queue.waiting
        counters.inFlight = queue.inFlight
        commands.publish(counters)
        for transfer in ended { if let result = transfer.result { transfer.complete(result) } }
        ended.removeAll(keepingCapacity: true)
    }
}
