internal import Base
private import Glibc

/// The loop of the client's thread: it takes commands, starts and ends requests, and waits for sockets.
///
/// ``HTTP2Transport`` carries the requests that it accepts, libcurl all others. The loop drives libcurl with
/// `curl_multi_perform` and `curl_multi_poll` instead of `curl_multi_socket_action`, with which libcurl 7.88 failed
/// HTTP/2 requests whose server responded before it had read the body.
final class TransferLoop {
    /// The longest wait.
    ///
    /// It bounds the delay after the machine slept, and shows a watchdog that the loop runs.
    private static let longestWait = Duration.seconds(1)

    /// The limit of reads before requests end: a server that floods the client must not keep it from the others.
    private static let mostReads = 64

    private let commands: TransferCommands
    private let multi: MultiHandle
    private let configuration: HTTPClient.Configuration
    private let time: any TimeSource
    private let publish: (HTTPClient.Counters) -> Void

    private var queue: TransferQueue
    private var requests: [UInt64: SubmittedRequest] = [:]
    private let http2: HTTP2Transport
    /// The requests that libcurl carries.
    private var running: [UInt64: Transfer] = [:]
    private var idle: [Transfer] = []
    private var ended: [EndedRequest] = []
    /// The requests that are cancelled once all sockets were read.
    private var cancelled: [UInt64] = []
    private var counters = HTTPClient.Counters()
    /// `true` once a server has answered over HTTP/1.1, where each request needs its own connection.
    private var hasSeenHTTP1 = false

    init(
        commands: TransferCommands,
        multi: MultiHandle,
        configuration: HTTPClient.Configuration,
        time: any TimeSource,
        publish: @escaping (HTTPClient.Counters) -> Void
    ) {
        self.commands = commands
        self.multi = multi
        self.configuration = configuration
        self.time = time
        self.publish = publish
        queue = TransferQueue(maximumInFlight: configuration.maximumInFlight)
        http2 = HTTP2Transport(configuration: configuration, time: time, multi: multi)
    }

    /// Runs until the queue of commands is closed; by then every request has its response or failure.
    func run() {
        while executeCommands() {
            startQueued()
            runRound()
        }
        // The only copy of a new refresh token may be waiting in a socket.
        http2.receive(isLast: true)
        for ended in http2.takeEnded() { end(ended) }
        endAll(.shutDown, "the HTTP client was shut down")
        completeEnded()
        idle = []
        http2.close()
        commands.releaseHandle()
    }

    /// Executes the queued commands; returns `false` once the queue is closed.
    private func executeCommands() -> Bool {
        let (taken, isClosed) = commands.take()
        for command in taken {
            switch command {
            case .submit(let request):
                counters.requests += 1
                requests[request.id] = request
                queue.submit(request.id, deadline: request.deadline)
            case .cancel(let id):
                cancelled.append(id)
            }
        }
        return !isClosed
    }

    private func endExpired(at now: BootInstant) {
        for id in queue.expired(at: now) {
            guard let request = requests[id] else { continue }
            if let expired = http2.expire(id) {
                end(expired)
            } else {
                let inQueue = HTTPFailure(kind: .expired, message: "the deadline passed before the request was sent")
                end(request, .failure(running[id]?.expiry() ?? inQueue))
            }
        }
    }

    private func startQueued() {
        while let id = queue.startNext() {
            guard let request = requests[id], !http2.accept(request) else { continue }
            startInLibcurl(request)
        }
    }

    private func startInLibcurl(_ request: SubmittedRequest) {
        do throws(HTTPFailure) {
            try start(request)
        } catch {
            end(request, .failure(error))
        }
    }

    /// Starts a request in libcurl, after the last checks that may prevent it.
    private func start(_ request: SubmittedRequest) throws(HTTPFailure) {
        try request.checkBeforeSending(time)
        let now = time.sinceBoot
        if let last = idle.popLast() {
            try start(request, on: last, at: now)
        } else {
            try start(request, on: newTransfer(), at: now)
        }
    }

    private func newTransfer() throws(HTTPFailure) -> Transfer {
        let transfer = try Transfer(configuration: configuration, time: time)
        try multi.shareSessions(with: transfer)
        return transfer
    }

    private func start(_ request: SubmittedRequest, on transfer: Transfer, at now: BootInstant) throws(HTTPFailure) {
        do throws(HTTPFailure) {
            if request.content.pattern.endpoint.scheme == .http { try allowConnectionsForHTTP1() }
            try transfer.prepare(for: request, at: now)
            try multi.add(transfer)
        } catch {
            transfer.reset()
            if transfer.isReusable { idle.append(transfer) }
            throw error
        }
        running[request.id] = transfer
    }

    /// Starts a request that was not sent again, on a new handle.
    private func restart(_ request: SubmittedRequest, insteadOf transfer: Transfer) {
        running[request.id] = nil
        multi.remove(transfer)
        do throws(HTTPFailure) {
            try start(request, on: newTransfer(), at: time.sinceBoot)
        } catch {
            end(request, .failure(error))
        }
    }

    private func runRound() {
        let now = time.sinceBoot
        var failure: HTTPFailure?
        do throws(HTTPFailure) {
            try multi.perform()
            if !cancelled.isEmpty || queue.hasExpired(at: now) { try readWaitingResponses() }
        } catch {
            failure = error
        }
        // A request that ended before libcurl failed keeps its response.
        endFinished()
        startRequestsForHTTP1()
        // The multi handle itself failed, usually because memory ran out: none of its transfers can continue.
        if let failure { for id in running.keys.sorted() { fail(id, .other, failure.message) } }
        // After a failure, the loop did not learn which sockets are ready.
        http2.receive(isLast: failure != nil || !cancelled.isEmpty || queue.hasExpired(at: now))
        for ended in http2.takeEnded() { end(ended) }
        // Requests end after all sockets were read. If the process was stopped past a deadline, the response, with the
        // only copy of a new refresh token, may be waiting in its socket. They end before more is sent: the lease of a
        // request that is still waiting may be over.
        for id in cancelled { fail(id, .cancelled, "the request was cancelled") }
        cancelled.removeAll(keepingCapacity: true)
        endExpired(at: now)
        http2.send()
        for ended in http2.takeEnded() { end(ended) }
        counters.rounds += 1
        completeEnded()
        wait(failure)
    }

    /// Lets libcurl read the responses that have arrived, before requests end: in each round it reads at most one TLS
    /// record of a connection, and a response has several.
    private func readWaitingResponses() throws(HTTPFailure) {
        for _ in 0..<Self.mostReads {
            guard try multi.hasReadySocket() else { return }
            try multi.perform()
        }
    }

    private func wait(_ failure: HTTPFailure?) {
        do throws(HTTPFailure) {
            if let failure { throw failure }
            let span = http2.hasMoreWork ? .zero : queue.waitTime(at: time.sinceBoot, limit: Self.longestWait)
            var sockets = http2.sockets()
            try multi.wait(milliseconds: Int32(span.wholeMilliseconds), for: &sockets)
            http2.noteReady(sockets)
        } catch {
            // Keeps the thread from spinning until the machine has recovered. A failed wait does not end any transfer.
            _ = poll(nil, 0, 100)
        }
    }

    private func endFinished() {
        while let (handle, code) = multi.nextEnded() {
            if let connection = handle as? TLSConnection { http2.endConnecting(connection, code: code) }
            guard let transfer = handle as? Transfer, let request = transfer.request else { continue }
            if transfer.needsNewHandle {
                restart(request, insteadOf: transfer)
                continue
            }
            let result = transfer.result(code: code)
            end(request, result)
            guard case .success(let response) = result, response.httpVersion == .http1 else { continue }
            do throws(HTTPFailure) {
                try allowConnectionsForHTTP1()
            } catch {
                // Fewer connections are slower but still correct; the next response tries again.
            }
        }
    }

    /// Starts the requests whose server turned out to speak HTTP/1.1.
    private func startRequestsForHTTP1() {
        let requests = http2.takeRequestsForHTTP1()
        guard !requests.isEmpty else { return }
        do throws(HTTPFailure) {
            try allowConnectionsForHTTP1()
        } catch {
            // Fewer connections are slower but still correct; the next response tries again.
        }
        for request in requests { startInLibcurl(request) }
    }

    private func allowConnectionsForHTTP1() throws(HTTPFailure) {
        guard !hasSeenHTTP1 else { return }
        try multi.limitConnections(to: configuration.maximumConnections)
        hasSeenHTTP1 = true
    }

    private func endAll(_ kind: HTTPFailure.Kind, _ message: String) {
        for id in requests.keys.sorted() { fail(id, kind, message) }
    }

    /// Ends a waiting or in-flight request with a failure; does nothing if it has already ended.
    private func fail(_ id: UInt64, _ kind: HTTPFailure.Kind, _ message: String) {
        guard let request = requests[id] else { return }
        if let abandoned = http2.abandon(id, kind, message) { return end(abandoned) }
        let failure = running[id]?.failure(kind, message) ?? HTTPFailure(kind: kind, message: message)
        end(request, .failure(failure))
    }

    /// Ends a request that libcurl carries, or that has not started.
    private func end(_ request: SubmittedRequest, _ result: Result<HTTPResponse, HTTPFailure>) {
        var cost = TransferCost()
        if let transfer = running.removeValue(forKey: request.id) {
            cost = transfer.cost
            multi.remove(transfer)
            transfer.reset()
            if transfer.isReusable { idle.append(transfer) }
        }
        end(EndedRequest(request: request, result: result, cost: cost))
    }

    /// Removes a request from the queue and counts it; its caller gets the result at the end of the round.
    private func end(_ ending: EndedRequest) {
        requests[ending.request.id] = nil
        queue.remove(ending.request.id)
        count(ending)
        ended.append(ending)
    }

    /// Publishes the counters, then calls the completions, which may read them.
    private func completeEnded() {
        counters.waiting = queue.waiting
        counters.inFlight = queue.inFlight
        publish(counters)
        for ending in ended { ending.request.completion(ending.result) }
        ended.removeAll(keepingCapacity: true)
    }

    private func count(_ ending: EndedRequest) {
        counters.newConnections += ending.cost.connections
        counters.bytesSent += ending.cost.sent
        counters.bytesReceived += ending.cost.received
        switch ending.result {
        case .success(let response):
            counters.completed += 1
            if !response.newConnection { counters.reusedConnections += 1 }
            if response.httpVersion == .http1 { counters.http1Responses += 1 }
            if response.httpVersion == .http2 { counters.http2Responses += 1 }
        case .failure:
            counters.failed += 1
        }
    }
}
