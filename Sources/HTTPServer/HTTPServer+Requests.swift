private import Base

/// The callbacks of the connections' threads, one for each step of a request.
extension HTTPServer {
    func began(target: [UInt8], client: ServerConnection) -> Exchange {
        let now = time.sinceBoot
        let requests = client.beginRequest(at: now)
        let exchange = Exchange(
            target: target,
            client: client,
            id: ServerRequest.randomID(from: random),
            limits: limits,
            memory: memory,
            isLast: requests >= limits.requestsPerConnection ?? .max,
            at: now
        )
        exchanges.insert(exchange)
        return exchange
    }

    func ended(_ exchange: Exchange) {
        let now = time.sinceBoot
        // `false` for a client that the server has given up on. Its connection is about to be closed.
        _ = exchange.client.move(to: .idle(received: nil), at: now)
        exchange.releaseMemory()
        exchanges.remove(exchange)
        log?(exchange.summary(at: now))
    }

    /// Performs the next step of the request.
    ///
    /// `false` closes the connection.
    func advance(
        _ exchange: Exchange,
        on connection: MicroHTTPConnection,
        bytes: RawSpan,
        method: () -> String,
        head: (MicroHTTPConnection) -> RequestHead
    ) -> Bool {
        switch exchange.advance(bytes: bytes, method: method, head: { head(connection) }) {
        case .proceed: exchange.client.move(to: .body, at: time.sinceBoot)
        case .handle: handle(exchange, on: connection)
        case .wait(for: let request): wait(exchange, on: connection, for: request)
        case .refuse(let refusal, let closing):
            finish(
                exchange,
                on: connection,
                with: .respond(refusalHandler(refusal, exchange.target.path)),
                closing: closing
            )
        case .reply(let reply): finish(exchange, on: connection, with: reply, closing: false)
        }
    }

    private func handle(_ exchange: Exchange, on connection: MicroHTTPConnection) -> Bool {
        guard exchange.client.move(to: .handling, at: time.sinceBoot) else { return false }
        let request = exchange.takeRequest(clientAddress: exchange.clientAddress(trusting: trustedProxies))
        if let reply = immediateHandler?(request) {
            return finish(exchange, on: connection, with: reply, closing: false)
        }
        exchange.keep(request)
        return true
    }

    private func wait(_ exchange: Exchange, on connection: MicroHTTPConnection, for request: ServerRequest) -> Bool {
        connection.suspend()
        exchange.wait(on: connection)
        guard exchanges.mayWait() else {
            exchange.abandon()
            return true
        }
        let handler = handler
        exchange.attach(Task { exchange.complete(with: await handler(request)) })
        return true
    }

    private func finish(
        _ exchange: Exchange,
        on connection: MicroHTTPConnection,
        with reply: ServerReply,
        closing: Bool
    ) -> Bool {
        guard case .respond(let response) = reply, exchange.client.move(to: .responding, at: time.sinceBoot) else {
            return false
        }
        let id = exchange.id
        let isLast = closing || exchange.isLast || exchanges.isClosing
        if connection.queue(response, requestID: id, closing: isLast) {
            exchange.recordResponse(response)
            return true
        }
        let unusable = ServerResponse.text("unusable response\n", status: 500)
        exchange.recordResponse(unusable)
        return connection.queue(unusable, requestID: id, closing: true)
    }
}
