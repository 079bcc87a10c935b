internal import Base
internal import CCurl
private import Crypto

/// Carries requests over HTTP/2, on connections that libcurl makes and verifies.
///
/// libcurl could carry them too, at many times the cost: it writes the headers and the body of each request in system
/// calls of their own, and reads in small pieces. Here all requests that begin together leave together.
final class HTTP2Transport {
    private let configuration: HTTPClient.Configuration
    private let limits: HTTP2Limits
    private let time: any TimeSource
    private let multi: MultiHandle
    private let input = InputBuffer()
    private let mayUseTLSProxy = ProxyEnvironment.namesTLSProxy()

    private var pools: [String: HTTP2Pool] = [:]
    private var preparedPatterns: [ObjectIdentifier: PreparedPattern] = [:]
    private var exchanges: [UInt64: HTTP2Exchange] = [:]
    private var ended: [EndedRequest] = []
    private var requestsForHTTP1: [SubmittedRequest] = []
    /// The connections whose sockets the loop waits for, in the order of the wait.
    private var watched: [HTTP2Connection] = []

    /// The pool and the fields of a lasting pattern, which is kept so that its identity stays its own.
    private struct PreparedPattern {
        let pattern: RequestPattern
        let pool: HTTP2Pool
        let head: HTTP2RequestHead
    }

    /// The most lasting patterns that are kept prepared.
    private static let mostPatterns = 64

    init(configuration: HTTPClient.Configuration, time: any TimeSource, multi: MultiHandle) {
        self.configuration = configuration
        limits = HTTP2Limits(
            headerBytes: configuration.maximumHeaderBytes,
            bodyBytes: configuration.maximumBodyBytes
        )
        self.time = time
        self.multi = multi
    }

    /// Closes all connections; every request must have ended.
    func close() {
        for pool in pools.values { for connection in pool.connections { multi.remove(connection.tls) } }
        pools = [:]
        preparedPatterns = [:]
        watched = []
    }
}

// MARK: - Requests

extension HTTP2Transport {
    /// Takes a request over; returns `false` if libcurl must carry it.
    ///
    /// libcurl carries what only it can: HTTP/1.1, http URLs, and what may go through a proxy that
    /// speaks TLS.
    func accept(_ request: SubmittedRequest) -> Bool {
        let pattern = request.content.pattern
        guard configuration.http2, configuration.http2Framing == .nghttp2, pattern.endpoint.scheme == .https,
            !mayUseTLSProxy || pattern.endpoint.isLoopback
        else { return false }
        let (pool, head) = prepare(pattern)
        let now = time.sinceBoot
        guard !pool.speaksHTTP1(at: now) else { return false }
        let exchange = HTTP2Exchange(request, head: head, startedAt: now)
        exchanges[request.id] = exchange
        pool.enqueue(exchange)
        return true
    }

    private func prepare(_ pattern: RequestPattern) -> (HTTP2Pool, HTTP2RequestHead) {
        let identity = ObjectIdentifier(pattern)
        if let prepared = preparedPatterns[identity] { return (prepared.pool, prepared.head) }
        let pool = pool(for: pattern.endpoint)
        let head = HTTP2RequestHead(pattern, userAgent: configuration.userAgent)
        guard pattern.isLasting else { return (pool, head) }
        if preparedPatterns.count >= Self.mostPatterns { preparedPatterns = [:] }
        preparedPatterns[identity] = PreparedPattern(pattern: pattern, pool: pool, head: head)
        return (pool, head)
    }

    private func pool(for endpoint: Endpoint) -> HTTP2Pool {
        let name = endpoint.authority
        if let pool = pools[name] { return pool }
        let pool = HTTP2Pool(to: endpoint)
        pools[name] = pool
        return pool
    }

    /// Ends a request with a failure that the loop decided on; `nil` if the transport does not carry the request.
    func abandon(_ id: UInt64, _ kind: HTTPFailure.Kind, _ message: String) -> EndedRequest? {
        guard let exchange = exchanges.removeValue(forKey: id) else { return nil }
        if let stream = exchange.stream { exchange.connection?.cancel(stream) }
        return end(exchange, .failure(exchange.failure(kind, message)))
    }

    /// Ends a request whose deadline has passed; `nil` if the transport does not carry it.
    func expire(_ id: UInt64) -> EndedRequest? {
        guard let exchange = exchanges[id] else { return nil }
        let (kind, message) = exchange.request.expiry(
            isIssued: exchange.isIssued,
            startedAt: exchange.startedAt,
            now: time.sinceBoot
        )
        return abandon(id, kind, message)
    }

    /// Returns the requests that have ended since the last call.
    func takeEnded() -> [EndedRequest] {
        guard !ended.isEmpty else { return [] }
        defer { ended.removeAll(keepingCapacity: true) }
        return ended
    }

    /// Returns requests that libcurl must carry, because their server does not speak HTTP/2.
    func takeRequestsForHTTP1() -> [SubmittedRequest] {
        defer { requestsForHTTP1 = [] }
        return requestsForHTTP1
    }

    private func finish(_ exchange: HTTP2Exchange, _ result: Result<HTTPResponse, HTTPFailure>) {
        guard exchanges.removeValue(forKey: exchange.request.id) != nil else { return }
        ended.append(end(exchange, result))
    }

    private func end(_ exchange: HTTP2Exchange, _ result: Result<HTTPResponse, HTTPFailure>) -> EndedRequest {
        exchange.end()
        return EndedRequest(request: exchange.request, result: result, cost: exchange.cost)
    }
}

// MARK: - A round of the loop

extension HTTP2Transport {
    /// Reads from the connections that are ready, or for the last time before requests end, all that has arrived.
    func receive(isLast: Bool) {
        let now = time.sinceBoot
        for pool in pools.values {
            for connection in pool.connections where connection.state != .connecting {
                guard isLast || connection.isReady || connection.hasMoreInput else { continue }
                connection.isReady = false
                connection.receive(at: now, isLast: isLast)
                collect(from: connection, of: pool)
            }
        }
    }

    /// Begins waiting requests, opens the connections that they need, and sends.
    func send() {
        let now = time.sinceBoot
        for pool in pools.values {
            for connection in pool.connections {
                connection.checkLife(at: now)
                beginWaiting(of: pool, on: connection, at: now)
                connection.flush(at: now)
                collect(from: connection, of: pool)
            }
            removeEndedConnections(of: pool)
            openConnections(of: pool, at: now)
        }
    }

    private func beginWaiting(of pool: HTTP2Pool, on connection: HTTP2Connection, at now: BootInstant) {
        guard pool.waitingCount > 0, connection.freeStreams > 0 else { return }
        // The server may have closed an idle connection; a request that is sent then may be lost.
        if connection.isIdle { connection.receive(at: now) }
        var free = connection.freeStreams
        while free > 0, let exchange = pool.nextWaiting() {
            do throws(HTTPFailure) {
                try exchange.request.checkBeforeSending(time)
            } catch {
                finish(exchange, .failure(exchange.failure(error.kind, error.message)))
                continue
            }
            guard connection.begin(exchange, limits: limits, at: now) else { return pool.enqueue(exchange) }
            free -= 1
        }
    }

    /// Takes the results of ended streams, and those of all streams of a connection that is lost.
    private func collect(from connection: HTTP2Connection, of pool: HTTP2Pool) {
        for stream in connection.takeEnded() {
            guard let exchange = exchanges[stream.tag], exchange.stream === stream else { continue }
            if exchange.prepareRepeat() {
                pool.enqueue(exchange)
            } else {
                finish(exchange, exchange.result(limits: limits))
            }
        }
        guard connection.loss != nil || connection.isOver else { return }
        for stream in connection.unfinished {
            guard let exchange = exchanges[stream.tag], exchange.stream === stream else { continue }
            let loss = connection.loss
            let message = loss?.message ?? "the HTTP/2 connection ended before the response was complete"
            finish(exchange, .failure(exchange.failure(loss?.kind ?? .receiveFailed, code: loss?.code, message)))
        }
    }

    private func removeEndedConnections(of pool: HTTP2Pool) {
        pool.connections.removeAll { connection in
            guard connection.loss != nil || connection.isOver else { return false }
            multi.remove(connection.tls)
            return true
        }
    }
}

// MARK: - Connections

extension HTTP2Transport {
    private func openConnections(of pool: HTTP2Pool, at now: BootInstant) {
        pool.removeEnded()
        guard pool.waitingCount > 0, pool.mayConnect(at: now) else { return }
        let count = HTTP2Pool.connectionsToOpen(
            waiting: pool.waitingCount,
            connecting: pool.connections.count { $0.state == .connecting },
            open: pool.connections.count { $0.state == .open },
            limit: configuration.connectionsOverHTTP2
        )
        for _ in 0..<count {
            do throws(HTTPFailure) {
                let connection = try HTTP2Connection(
                    to: pool.endpoint,
                    configuration: configuration,
                    limits: limits,
                    input: input
                )
                try multi.shareSessions(with: connection.tls)
                try multi.add(connection.tls)
                pool.connections.append(connection)
            } catch {
                failWaiting(of: pool, error, at: now)
                return
            }
        }
    }

    /// Takes the result of a connection that libcurl has made, or could not make.
    func endConnecting(_ tls: TLSConnection, code: UInt32) {
        let now = time.sinceBoot
        for pool in pools.values {
            guard let connection = pool.connections.first(where: { $0.tls === tls }) else { continue }
            do throws(HTTPFailure) {
                guard tls.isHTTP2 != false else { return fallBack(pool, from: connection, at: now) }
                guard code == 0 else {
                    let kind = HTTPFailure.Kind(curlCode: code, requestIssued: false)
                    throw HTTPFailure(kind: kind, code: Int(code), message: tls.message(code: code))
                }
                try connection.establish(at: now)
            } catch {
                remove(connection, from: pool)
                failWaiting(of: pool, error, at: now)
            }
            return
        }
    }

    /// Gives the waiting requests of a server that speaks only HTTP/1.1 to libcurl.
    private func fallBack(_ pool: HTTP2Pool, from connection: HTTP2Connection, at now: BootInstant) {
        remove(connection, from: pool)
        pool.rememberHTTP1(at: now)
        for exchange in pool.takeWaiting() {
            exchanges[exchange.request.id] = nil
            exchange.end()
            requestsForHTTP1.append(exchange.request)
        }
    }

    private func remove(_ connection: HTTP2Connection, from pool: HTTP2Pool) {
        pool.connections.removeAll { $0 === connection }
        multi.remove(connection.tls)
    }

    /// Fails the waiting requests unless another connection may still take them.
    private func failWaiting(of pool: HTTP2Pool, _ error: HTTPFailure, at now: BootInstant) {
        guard !pool.connections.contains(where: { $0.state != .draining }) else { return pool.pauseConnecting(at: now) }
        for exchange in pool.takeWaiting() {
            let failure = exchange.failure(error.kind, code: error.code.map { UInt32($0) }, error.message)
            finish(exchange, .failure(failure))
        }
    }
}

// MARK: - Sockets

extension HTTP2Transport {
    /// `true` if the loop must not wait: input is left, or a request can begin.
    var hasMoreWork: Bool {
        pools.values.contains { pool in
            pool.connections.contains { $0.hasMoreInput || pool.waitingCount > 0 && $0.freeStreams > 0 }
        }
    }

    /// Returns the sockets to wait for.
    func sockets() -> [curl_waitfd] {
        watched.removeAll(keepingCapacity: true)
        for pool in pools.values {
            for connection in pool.connections where connection.state != .connecting { watched.append(connection) }
        }
        return watched.map { connection in
            let events = CURL_WAIT_POLLIN | (connection.awaitsWriting ? CURL_WAIT_POLLOUT : 0)
            return curl_waitfd(fd: connection.tls.socket, events: Int16(events), revents: 0)
        }
    }

    /// Notes which sockets were ready after the wait.
    func noteReady(_ sockets: [curl_waitfd]) {
        for (connection, socket) in zip(watched, sockets) where socket.revents != 0 { connection.isReady = true }
    }
}

/// Memory into which connections read, one after the other; it is wiped after each use.
@safe
final class InputBuffer {
    let bytes: UnsafeMutableRawBufferPointer

    init() {
        unsafe bytes = .allocate(byteCount: 16_384, alignment: 16)
    }

    deinit {
        unsafe bytes.deallocate()
    }

    /// Calls the closure with the bytes that were read, then wipes them.
    func use(_ count: Int, _ body: (RawSpan) -> Void) {
        let used = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
        defer { unsafe ErasedBytes.wipe(used) }
        body(unsafe UnsafeRawBufferPointer(used).bytes)
    }
}
