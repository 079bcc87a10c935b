internal import Clocks
private import Glibc

/// The loop of the client's thread: it takes commands, starts and ends transfers, and waits for sockets.
///
/// It drives libcurl with `curl_multi_perform` and `curl_multi_poll` instead of `curl_multi_socket_action`, with which
/// libcurl 7.88 failed HTTP/2 requests whose server responded before it had read the body.
final class TransferLoop {
    /// The longest wait.
    ///
    /// It bounds the delay after the machine slept, and shows a watchdog that the loop runs.
    private static let longestWait = Duration.seconds(1)

    private let commands: TransferCommands
    private let multi: MultiHandle
    private let configuration: HTTPClient.Configuration
    private let time: any TimeSource
    private let publish: (HTTPClient.Counters) -> Void

    private var queue: TransferQueue
    private var requests: [UInt64: SubmittedRequest] = [:]
    private var running: [UInt64: Transfer] = [:]
    private var idle: [Transfer] = []
    private var ended: [(request: SubmittedRequest, result: Result<HTTPResponse, HTTPFailure>)] = []
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
    }

    /// Runs until the queue of commands is closed; by then every request has its response or failure.
    func run() {
        while executeCommands() {
            startQueued()
            runLibcurl()
        }
        endAll(.shutDown, "the HTTP client was shut down")
        completeEnded()
        idle = []
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
                fail(id, .cancelled, "the request was cancelled")
            }
        }
        return !isClosed
    }

    private func endExpired() {
        for id in queue.expired(at: time.sinceBoot) {
            guard let request = requests[id] else { continue }
            end(request, .failure(running[id]?.expiry() ?? expiredInQueue))
        }
    }

    private var expiredInQueue: HTTPFailure {
        HTTPFailure(kind: .expired, message: "the deadline passed before the request was sent")
    }

    private func startQueued() {
        while let id = queue.startNext() {
            guard let request = requests[id] else { continue }
            do throws(HTTPFailure) {
                try start(request)
            } catch {
                end(request, .failure(error))
            }
        }
    }

    /// Starts a request in libcurl, after the last checks that may prevent it.
    private func start(_ request: SubmittedRequest) throws(HTTPFailure) {
        guard !request.cancellation.isRequested else {
            throw HTTPFailure(kind: .cancelled, message: "the request was cancelled")
        }
        guard request.beforeSend?() ?? true else {
            throw HTTPFailure(kind: .withheld, message: "beforeSend prevented the request")
        }
        let now = time.sinceBoot
        guard now < request.deadline else {
            throw expiredInQueue
        }
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

    private func runLibcurl() {
        var failure: HTTPFailure?
        do throws(HTTPFailure) {
            try multi.perform()
        } catch {
            failure = error
        }
        // A request that ended before libcurl failed keeps its response.
        endFinished()
        // The multi handle itself failed, usually because memory ran out: none of its transfers can continue.
        if let failure { for id in running.keys.sorted() { fail(id, .other, failure.message) } }
        // Deadlines are checked after libcurl has read. If the process was stopped past a deadline, the response, with
        // the only copy of a new refresh token, may be waiting in its socket.
        endExpired()
        counters.rounds += 1
        completeEnded()
        do throws(HTTPFailure) {
            if let failure { throw failure }
            let span = queue.waitTime(at: time.sinceBoot, limit: Self.longestWait)
            try multi.wait(milliseconds: Int32(span.wholeMilliseconds))
        } catch {
            // Keeps the thread from spinning until the machine has recovered. A failed wait does not end any transfer.
            _ = poll(nil, 0, 100)
        }
    }

    private func endFinished() {
        while let (transfer, code) = multi.nextEnded() {
            guard let request = transfer.request else { continue }
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
        let failure = running[id]?.failure(kind, message) ?? HTTPFailure(kind: kind, message: message)
        end(request, .failure(failure))
    }

    /// Removes a request from every list and counts it; its caller gets the result at the end of the round.
    private func end(_ request: SubmittedRequest, _ result: Result<HTTPResponse, HTTPFailure>) {
        requests[request.id] = nil
        queue.remove(request.id)
        if let transfer = running.removeValue(forKey: request.id) {
            let cost = transfer.cost
            counters.newConnections += cost.connections
            counters.bytesSent += cost.sent
            counters.bytesReceived += cost.received
            multi.remove(transfer)
            transfer.reset()
            if transfer.isReusable { idle.append(transfer) }
        }
        count(result)
        ended.append((request, result))
    }

    /// Publishes the counters, then calls the completions, which may read them.
    private func completeEnded() {
        counters.waiting = queue.waiting
        counters.inFlight = queue.inFlight
        publish(counters)
        for (request, result) in ended { request.completion(result) }
        ended.removeAll(keepingCapacity: true)
    }

    private func count(_ result: Result<HTTPResponse, HTTPFailure>) {
        switch result {
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
