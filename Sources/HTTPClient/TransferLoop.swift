internal import Clocks
private import Glibc

/// The loop of the owner thread: it takes orders, starts and ends transfers, and waits for sockets.
///
/// It drives libcurl with `curl_multi_perform` and `curl_multi_poll` instead of `curl_multi_socket_action`, with which
/// libcurl 7.88 failed HTTP/2 requests whose server responded before it had read the body.
final class TransferLoop {
    /// The longest wait.
    ///
    /// It bounds the delay after the machine slept, and shows a watchdog that the loop runs.
    private static let longestPause = Duration.seconds(1)

    private let inbox: TransferCommands
    private let multi: MultiHandle
    private let configuration: HTTPClient.Configuration
    private let time: any TimeSource
    private let publish: (HTTPClient.Counters) -> Void

    private var queue: TransferQueue
    private var tickets: [UInt64: SubmittedRequest] = [:]
    private var running: [UInt64: Transfer] = [:]
    private var idle: [Transfer] = []
    private var ended: [(ticket: SubmittedRequest, result: Result<HTTPResponse, HTTPFailure>)] = []
    private var counters = HTTPClient.Counters()
    /// `true` once a server has answered over HTTP/1.1, where each request needs its own connection.
    private var hasMetHTTP1 = false

    init(
        inbox: TransferCommands,
        multi: MultiHandle,
        configuration: HTTPClient.Configuration,
        time: any TimeSource,
        publish: @escaping (HTTPClient.Counters) -> Void
    ) {
        self.inbox = inbox
        self.multi = multi
        self.configuration = configuration
        self.time = time
        self.publish = publish
        queue = TransferQueue(maximumInFlight: configuration.maximumInFlight)
    }

    /// Runs until the inbox is closed; by then every request has its response or failure.
    func run() {
        while obeyOrders() {
            startWaiting()
            turnLibcurl()
        }
        endAll(.shutDown, "the HTTP client was shut down")
        answerEnded()
        idle = []
        inbox.letGo()
    }

    /// Takes the orders from the inbox; returns `false` once it is closed.
    private func obeyOrders() -> Bool {
        let (orders, isClosed) = inbox.take()
        for order in orders {
            switch order {
            case .submit(let ticket):
                counters.requests += 1
                tickets[ticket.id] = ticket
                queue.submit(ticket.id, deadline: ticket.deadline)
            case .cancel(let id):
                fail(id, .cancelled, "the request was cancelled")
            }
        }
        return !isClosed
    }

    private func endExpired() {
        for id in queue.expired(at: time.sinceBoot) {
            guard let ticket = tickets[id] else { continue }
            end(ticket, .failure(running[id]?.expiry() ?? expiredInQueue))
        }
    }

    private var expiredInQueue: HTTPFailure {
        HTTPFailure(kind: .expired, message: "the deadline passed before the request was sent")
    }

    private func startWaiting() {
        while let id = queue.startNext() {
            guard let ticket = tickets[id] else { continue }
            do throws(HTTPFailure) {
                try start(ticket)
            } catch {
                end(ticket, .failure(error))
            }
        }
    }

    /// Starts a request in libcurl, after the last checks that may prevent it.
    private func start(_ ticket: SubmittedRequest) throws(HTTPFailure) {
        guard !ticket.cancellation.isRequested else {
            throw HTTPFailure(kind: .cancelled, message: "the request was cancelled")
        }
        guard ticket.beforeSend?() ?? true else {
            throw HTTPFailure(kind: .withheld, message: "the request was withheld before it was sent")
        }
        let now = time.sinceBoot
        guard now < ticket.deadline else {
            throw expiredInQueue
        }
        if let last = idle.popLast() {
            try start(ticket, on: last, at: now)
        } else {
            try start(ticket, on: newTransfer(), at: now)
        }
    }

    private func newTransfer() throws(HTTPFailure) -> Transfer {
        let transfer = try Transfer(configuration: configuration, time: time)
        try multi.shareSessions(with: transfer)
        return transfer
    }

    private func start(_ ticket: SubmittedRequest, on transfer: Transfer, at now: BootInstant) throws(HTTPFailure) {
        do throws(HTTPFailure) {
            if ticket.request.pattern.endpoint.scheme == .http { try allowForHTTP1() }
            try transfer.prepare(for: ticket, at: now)
            try multi.add(transfer)
        } catch {
            transfer.reset()
            if transfer.isReusable { idle.append(transfer) }
            throw error
        }
        running[ticket.id] = transfer
    }

    /// Starts a request that was not sent again, on a new handle.
    private func restart(_ ticket: SubmittedRequest, insteadOf transfer: Transfer) {
        running[ticket.id] = nil
        multi.remove(transfer)
        do throws(HTTPFailure) {
            try start(ticket, on: newTransfer(), at: time.sinceBoot)
        } catch {
            end(ticket, .failure(error))
        }
    }

    private func turnLibcurl() {
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
        answerEnded()
        do throws(HTTPFailure) {
            if let failure { throw failure }
            let pause = queue.pause(at: time.sinceBoot, limit: Self.longestPause)
            try multi.wait(milliseconds: Int32(pause.wholeMilliseconds))
        } catch {
            // Keeps the thread from spinning until the machine has recovered. A failed wait does not end any transfer.
            _ = poll(nil, 0, 100)
        }
    }

    private func endFinished() {
        while let (transfer, code) = multi.nextEnded() {
            guard let ticket = transfer.ticket else { continue }
            if transfer.needsNewHandle {
                restart(ticket, insteadOf: transfer)
                continue
            }
            let result = transfer.result(code: code)
            end(ticket, result)
            guard case .success(let answer) = result, answer.httpVersion == .http1 else { continue }
            do throws(HTTPFailure) {
                try allowForHTTP1()
            } catch {
                // Fewer connections are slower but still correct; the next response tries again.
            }
        }
    }

    private func allowForHTTP1() throws(HTTPFailure) {
        guard !hasMetHTTP1 else { return }
        try multi.allow(connections: configuration.maximumConnections)
        hasMetHTTP1 = true
    }

    private func endAll(_ kind: HTTPFailure.Kind, _ message: String) {
        for id in tickets.keys.sorted() { fail(id, kind, message) }
    }

    /// Ends a waiting or in-flight request with a failure; does nothing if it has already ended.
    private func fail(_ id: UInt64, _ kind: HTTPFailure.Kind, _ message: String) {
        guard let ticket = tickets[id] else { return }
        let failure = running[id]?.failure(kind, message) ?? HTTPFailure(kind: kind, message: message)
        end(ticket, .failure(failure))
    }

    /// Removes a request from every list and counts it; its caller gets the result at the end of the round.
    private func end(_ ticket: SubmittedRequest, _ result: Result<HTTPResponse, HTTPFailure>) {
        tickets[ticket.id] = nil
        queue.remove(ticket.id)
        if let transfer = running.removeValue(forKey: ticket.id) {
            let cost = transfer.cost
            counters.newConnections += cost.connections
            counters.bytesSent += cost.sent
            counters.bytesReceived += cost.received
            multi.remove(transfer)
            transfer.reset()
            if transfer.isReusable { idle.append(transfer) }
        }
        count(result)
        ended.append((ticket, result))
    }

    /// Publishes the counters, then calls the completions, which may read them.
    private func answerEnded() {
        counters.waiting = queue.waiting
        counters.inFlight = queue.inFlight
        publish(counters)
        for (ticket, result) in ended { ticket.completion(result) }
        ended.removeAll(keepingCapacity: true)
    }

    private func count(_ result: Result<HTTPResponse, HTTPFailure>) {
        switch result {
        case .success(let answer):
            counters.completed += 1
            if !answer.newConnection { counters.reusedConnections += 1 }
            if answer.httpVersion == .http1 { counters.http1Answers += 1 }
            if answer.httpVersion == .http2 { counters.http2Answers += 1 }
        case .failure:
            counters.failed += 1
        }
    }
}
