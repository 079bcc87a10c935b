internal import Clocks
private import Glibc

/// What the owner thread does: it takes orders, starts and ends transfers, and waits for sockets.
///
/// `curl_multi_perform` and `curl_multi_poll` drive libcurl here rather than `curl_multi_socket_action`, with which
/// libcurl 7.88 failed HTTP/2 requests whose server answered before it had read the body.
final class TransferLoop {
    /// The longest wait: what the machine's sleep made late is noticed within it, and a watchdog sees the loop turn.
    private static let longestPause = Duration.seconds(1)

    private let inbox: Inbox
    private let multi: MultiHandle
    private let configuration: HTTPClient.Configuration
    private let time: any TimeSource
    private let publish: (HTTPClient.Counters) -> Void

    private var queue: TransferQueue
    private var tickets: [UInt64: Ticket] = [:]
    private var running: [UInt64: Transfer] = [:]
    private var idle: [Transfer] = []
    private var ended: [(ticket: Ticket, result: Result<HTTPResponse, HTTPFailure>)] = []
    private var counters = HTTPClient.Counters()
    /// Whether a server was met that speaks HTTP/1.1 alone, where each request needs a connection of its own.
    private var hasMetHTTP1 = false

    init(
        inbox: Inbox,
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

    /// Runs until the inbox is closed; every request has its answer or failure by then.
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

    /// Takes what the inbox holds; false when it is closed.
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

    /// Hands a request to libcurl, after the last questions that can keep it here.
    private func start(_ ticket: Ticket) throws(HTTPFailure) {
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

    private func start(_ ticket: Ticket, on transfer: Transfer, at now: BootInstant) throws(HTTPFailure) {
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

    /// Starts a request again that was kept here, on a handle of its own.
    private func restart(_ ticket: Ticket, insteadOf transfer: Transfer) {
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
        // A request that ended before libcurl failed keeps its answer.
        endFinished()
        // The multi handle itself failed, mostly for want of memory: no transfer in it can go on.
        if let failure { for id in running.keys.sorted() { fail(id, .other, failure.message) } }
        // After libcurl has read: a process that stood still beyond a deadline may have the answer, and the only copy of
        // a new refresh token, waiting in its socket.
        endExpired()
        counters.rounds += 1
        answerEnded()
        do throws(HTTPFailure) {
            if let failure { throw failure }
            let pause = queue.pause(at: time.sinceBoot, limit: Self.longestPause)
            try multi.wait(milliseconds: Int32(pause.wholeMilliseconds))
        } catch {
            // Keeps the thread from spinning until the machine has recovered. A failed wait ends no transfer.
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
                // Fewer connections are slower and right all the same; the next answer asks again.
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

    /// Ends a request from here, waiting or in flight; one that has ended already is left alone.
    private func fail(_ id: UInt64, _ kind: HTTPFailure.Kind, _ message: String) {
        guard let ticket = tickets[id] else { return }
        let failure = running[id]?.failure(kind, message) ?? HTTPFailure(kind: kind, message: message)
        end(ticket, .failure(failure))
    }

    /// Takes a request out of every list and counts it; its caller is answered at the end of the round.
    private func end(_ ticket: Ticket, _ result: Result<HTTPResponse, HTTPFailure>) {
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

    /// Publishes the counters and then answers the callers, who may look at them.
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
