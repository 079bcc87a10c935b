import Testing

@testable import WorkerTokens

@Suite("Responses on a unix socket")
struct HTTPResponseParserTests {
    @Test("A response is complete with its length, however it is divided", arguments: [1, 2, 7, 1000])
    func parts(size: Int) throws {
        let text = "HTTP/1.1 503 Service Unavailable\r\nretry-after:  7 \r\nContent-Length: 5\r\nX: y:z\r\n\r\nhello"
        var parser = HTTPResponseParser()
        var response: WorkerTokens.Response?
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            #expect(response == nil)
            response = try parser.add(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        #expect(response?.status == 503)
        #expect(response?.retryAfter == "7")
        #expect(response?.body == Array("hello".utf8))
    }

    @Test("Without a length the body ends with the connection")
    func withoutLength() throws {
        var parser = HTTPResponseParser()
        #expect(try parser.add("HTTP/1.0 200 OK\r\n\r\nhel".utf8) == nil)
        #expect(try parser.add("lo".utf8) == nil)
        #expect(try parser.end().body == Array("hello".utf8))
    }

    @Test(
        "A connection that ends early has no response",
        arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"]
    )
    func closedEarly(text: String) throws {
        var parser = HTTPResponseParser()
        #expect(try parser.add(text.utf8) == nil)
        #expect(throws: UnixSocketError.closedEarly) { try parser.end() }
    }

    @Test(
        "What no worker sends is refused",
        arguments: [
            "HTTP/2 200 OK\r\n\r\n", "hello\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        ]
    )
    func notHTTP(text: String) {
        var parser = HTTPResponseParser()
        #expect(throws: UnixSocketError.notHTTP) { try parser.add(text.utf8) }
    }

    @Test("Head and body are limited")
    func limits() throws {
        let long = [UInt8](repeating: UInt8(ascii: "a"), count: HTTPResponseParser.maximumHead + 1)
        var head = HTTPResponseParser()
        #expect(throws: UnixSocketError.responseTooLarge) { try head.add(long) }
        var announced = HTTPResponseParser()
        let length = HTTPResponseParser.maximumBody + 1
        #expect(throws: UnixSocketError.responseTooLarge) {
            try announced.add("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n".utf8)
        }
        var endless = HTTPResponseParser()
        #expect(try endless.add("HTTP/1.1 200 OK\r\n\r\n".utf8) == nil)
        #expect(throws: UnixSocketError.responseTooLarge) {
            try endless.add([UInt8](repeating: 0, count: length))
        }
    }
}
