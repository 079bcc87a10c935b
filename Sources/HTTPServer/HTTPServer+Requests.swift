/// What the connections' threads call, one step of a request each.
extension HTTPServer {
    func began(target: [UInt8]) -> Exchange {
        let exchange = Exchange(target: RequestTarget(target), maximumBodyBytes: maximumBodyBytes)
        exchanges.insert(exchange)
        return exchange
    }

    func ended(_ exchange: Exchange) {
        exchanges.remove(exchange)
    }

    /// Takes the request one step on; false closes the connection.
    func turn(_ exchange: Exchange, _ connection: Connection, method: String, bytes: RawSpan) -> Bool {
        let step = exchange.turn(
            bytes: bytes,
            declaredLength: connection.header("Content-Length").flatMap { Int($0) },
            expectsContinue: connection.header("Expect") != nil
        )
        switch step {
        case .proceed:
            return true
        case .reply(.drop):
            return false
        case .reply(.respond(let response)):
            return connection.queue(response, closing: exchanges.areClosing)
        case .ask:
            ask(exchange, connection, method: method)
            return true
        }
    }

    private func ask(_ exchange: Exchange, _ connection: Connection, method: String) {
        let request = ServerRequest(
            method: method,
            path: exchange.target.path,
            query: exchange.target.query,
            headers: connection.headers,
            body: exchange.takeBody(),
            peerAddress: connection.peerAddress
        )
        connection.suspend()
        exchange.wait(on: connection)
        guard exchanges.mayWait() else {
            exchange.abandon()
            return
        }
        let handler = handler
        exchange.follow(Task { exchange.answer(await handler(request)) })
    }
}
