internal import Base
internal import CCurl
private import Glibc

/// Carries requests over HTTP/2, on connections that libcurl makes and verifies.
///
/// libcurl could carry them too, at many times the cost: it writes the headers and the body of each request in system
/// calls of their own, and reads in small pieces. Here all requests that begin together leave together.
final class HTTP2Transport {
    private let configuration: HTTPClient.Configuration
    private let userAgent: HTTP2Fields
    private let time: any TimeSource
    private let multi: MultiHandle
    private let input = InputBuffer()
    private let mayUseTLSProxy = HTTP2Transport.environmentNamesTLSProxy()

    /// One for each server. They are few, so looking through them costs less than the hash of a name.
    private var pools: [HTTP2Pool] = []
    private var ended: [HTTPTransfer] = []
    private var transfersForHTTP1: [HTTPTransfer] = []
    /// The connections whose sockets the loop waits for, in the order of the wait.
    private var watched: [HTTP2Connection] = []

    init(configuration: HTTPClient.Configuration, time: any TimeSource, multi: MultiHandle) {
        self.configuration = configuration
        userAgent = HTTP2Fields([("user-agent", configuration.userAgent)], isSecret: false)
        self.time = time
        self.multi = multi
    }

    /// Closes all connections.
    ///
    /// Every request must have ended.
    func close() {
        for pool in pools { for connection in pool.connections { multi.remove(connection.tls) } }
        pools = []
        watched = []
    }
}

// MARK: - Requests

extension HTTP2Transport {
    /// Takes a request over, and returns `false` if ``HTTP1Connection`` must carry it.
    ///
    /// That is the case for http URLs, servers without HTTP/2, and for what might go through a proxy that speaks TLS.
    func accept(_ transfer: HTTPTransfer) -> Bool {
        let pattern = transfer.request.pattern
        guard pattern.endpoint.isSecure, !mayUseTLSProxy || pattern.endpoint.isLoopback else { return false }
        let pool = pool(for: pattern)
        let now = time.sinceBoot
        guard !pool.speaksHTTP1(at: now) else { return false }
        transfer.startedAt = now
        pool.enqueue(transfer)
        return true
    }

    private func pool(for pattern: RequestPattern) -> HTTP2Pool {
        if let pool = pools.first(where: { $0.authority == pattern.authority }) { return pool }
        let pool = HTTP2Pool(to: pattern.endpoint)
        pools.append(pool)
        return pool
    }

    /// Returns the requests that have got their results since the last call.
    func takeEnded() -> [HTTPTransfer] {
        guard !ended.isEmpty else { return [] }
        defer { ended.removeAll(keepingCapacity: true) }
        return ended
    }

    /// Returns the requests whose server turned out not to speak HTTP/2.
    func takeTransfersForHTTP1() -> [HTTPTransfer] {
        defer { transfersForHTTP1 = [] }
        return transfersForHTTP1
    }

    private func end(_ transfer: HTTPTransfer, with result: Result<HTTPResponse, HTTPError>) {
        guard transfer.result == nil else { return }
        transfer.end(result)
        ended.append(transfer)
    }
}

// MARK: - A round of the loop

extension HTTP2Transport {
    /// Reads from the connections that are ready, or for the last time before requests end, all that has arrived.
    func receive(isLast: Bool) {
        let now = time.sinceBoot
        for pool in pools {
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
        for pool in pools {
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
        // The server might have closed an idle connection. A request that is sent then might be lost.
        if connection.isIdle { connection.receive(at: now) }
        var free = connection.freeStreams
        while free > 0, let transfer = pool.nextWaiting() {
            do throws(HTTPError) {
                try transfer.checkBeforeSending(time)
            } catch {
                end(transfer, with: .failure(error))
                continue
            }
            guard connection.begin(transfer, at: now) else { return pool.enqueue(transfer) }
            free -= 1
        }
    }

    /// Takes the results of ended streams, and those of all streams of a connection that is lost.
    private func collect(from connection: HTTP2Connection, of pool: HTTP2Pool) {
        for transfer in connection.takeEnded() where transfer.result == nil {
            if transfer.prepareRepeat() {
                pool.enqueue(transfer)
            } else {
                end(transfer, with: transfer.resultOfStream())
            }
        }
        guard connection.loss != nil || connection.isOver else { return }
        let message = "the HTTP/2 connection ended before the response was complete"
        let loss = connection.loss ?? HTTPError(kind: .receiveFailed, message: message)
        for transfer in connection.unfinished where transfer.result == nil {
            end(transfer, with: .failure(transfer.failure(loss.kind, code: loss.code, loss.message)))
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
            limit: configuration.maximumConnections
        )
        for _ in 0..<count {
            do throws(HTTPError) {
                let connection = try HTTP2Connection(
                    to: pool.endpoint,
                    configuration: configuration,
                    userAgent: userAgent,
                    input: input
                )
                try multi.add(connection.tls)
                pool.connections.append(connection)
            } catch {
                failWaiting(of: pool, with: error, at: now)
                return
            }
        }
    }

    /// Takes the result of a connection that libcurl has made, or could not make.
    func endConnecting(_ tls: TLSConnection, code: UInt32) {
        let now = time.sinceBoot
        for pool in pools {
            guard let connection = pool.connections.first(where: { $0.tls === tls }) else { continue }
            do throws(HTTPError) {
                guard tls.isHTTP2 != false else { return fallBack(pool, from: connection, at: now) }
                guard code == 0 else {
                    let kind = HTTPError.Kind(curlCode: code, requestIssued: false)
                    throw HTTPError(kind: kind, code: Int(code), message: tls.message(code: code))
                }
                try connection.establish(at: now)
            } catch {
                remove(connection, from: pool)
                failWaiting(of: pool, with: error, at: now)
            }
            return
        }
    }

    /// Gives the waiting requests of a server that speaks only HTTP/1.1 back.
    private func fallBack(_ pool: HTTP2Pool, from connection: HTTP2Connection, at now: BootInstant) {
        remove(connection, from: pool)
        pool.rememberHTTP1(at: now)
        transfersForHTTP1 += pool.takeWaiting()
    }

    private func remove(_ connection: HTTP2Connection, from pool: HTTP2Pool) {
        pool.connections.removeAll { $0 === connection }
        multi.remove(connection.tls)
    }

    /// Fails the waiting requests unless another connection can still take them.
    private func failWaiting(of pool: HTTP2Pool, with error: HTTPError, at now: BootInstant) {
        guard !pool.connections.contains(where: { $0.state != .draining }) else { return pool.pauseConnecting(at: now) }
        for transfer in pool.takeWaiting() {
            end(transfer, with: .failure(transfer.failure(error.kind, code: error.code, error.message)))
        }
    }
}

// MARK: - Sockets

extension HTTP2Transport {
    /// `true` if the loop must not wait: input is left, or a request can begin.
    var hasMoreWork: Bool {
        pools.contains { pool in
            pool.connections.contains { $0.hasMoreInput || pool.waitingCount > 0 && $0.freeStreams > 0 }
        }
    }

    func sockets() -> [curl_waitfd] {
        watched.removeAll(keepingCapacity: true)
        for pool in pools {
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

// MARK: - Proxies

extension HTTP2Transport {
    /// `true` if https URLs can go through a proxy that itself speaks TLS.
    ///
    /// libcurl takes proxies from the environment (https://curl.se/libcurl/c/CURLOPT_PROXY.html), and prepares the TLS
    /// of such a proxy like that of the server: the proxy would be offered HTTP/2.
    static func environmentNamesTLSProxy(_ variable: (String) -> String? = variable) -> Bool {
        ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].contains { name in
            variable(name)?.lowercased().hasPrefix("https://") ?? false
        }
    }

    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
