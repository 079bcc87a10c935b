import Clocks
import Testing

@testable import HTTPServer

@Suite("What is too big or broken is refused", .timeLimit(.minutes(3)))
struct LimitTests {
    private static let limit = HTTPServer.Configuration(limits: .init(bodyBytes: 100))

    private static func length(_ request: ServerRequest) async -> ServerReply {
        .respond(.text("\(request.body.count)"))
    }

    @Test("A body is taken up to the limit and refused beyond it", arguments: [(100, 200), (101, 413), (1600, 413)])
    func bodyLimit(count: Int, status: Int) async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            let body = String(repeating: "x", count: count)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(count)\r\n\r\n\(body)")
            #expect(await client.answer()?.status == status)
            // The connection is in order: the next request is not taken for the rest of the body.
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
            #expect(await client.answer()?.body == "1")
        }
    }

    @Test("A chunked body, whose length nobody declared, meets the same limit")
    func chunkedLimit() async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<11 { await client.send("a\r\n0123456789\r\n") }
            await client.send("0\r\n\r\n")
            #expect(await client.answer()?.status == 413)
        }
    }

    @Test("A chunked body without end is cut off")
    func endlessBody() async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<200 { await client.send("a\r\n0123456789\r\n") }
            #expect(await client.everything() == "")
        }
    }

    @Test("A client that asks first is told before it sends too much")
    func expectTooMuch() async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n")
            #expect(await client.answer()?.status == 413)
        }
    }

    @Test("A client that asks first is told to go on")
    func expectFits() async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            #expect(await client.answer()?.status == 100)
            await client.send("abc")
            #expect(await client.answer()?.body == "3")
        }
    }

    @Test("A declared length far over the limit is refused unread")
    func hopelessLength() async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000000\r\n\r\n")
            #expect(await client.answer()?.status == 413)
        }
    }

    struct Head: Sendable, CustomTestStringConvertible {
        let name: String
        let text: String
        let status: Int
        var testDescription: String { name }
    }

    @Test(
        "Broken and oversized heads are refused and leave nothing open",
        arguments: [
            Head(
                name: "long target",
                text: "GET /\(String(repeating: "a", count: 100_000)) HTTP/1.1\r\nHost: h\r\n\r\n",
                status: 414
            ),
            Head(
                name: "long header",
                text: "GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: 100_000))\r\n\r\n",
                status: 431
            ),
            Head(name: "no host", text: "GET / HTTP/1.1\r\n\r\n", status: 400),
            Head(
                name: "negative length",
                text: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
                status: 400
            ),
            Head(
                name: "length beyond 64 bits",
                text: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
                status: 413
            ),
            Head(
                name: "chunk of no size",
                text: "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                status: 400
            ),
        ]
    )
    func brokenHead(_ row: Head) async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send(row.text)
            client.closeSendingSide()
            #expect(await client.answer()?.status == row.status)
        }
    }

    @Test("A client that leaves in the middle of its request leaves nothing open")
    func halfRequest() async throws {
        let time = ManualTime()
        try await withServer(time: time, handler: Self.length) { server in
            for text in ["GET", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab"] {
                let client = try RawClient(port: server.port)
                await client.send(text)
                client.closeSendingSide()
                // Where libmicrohttpd waits for the rest all the same, the deadline ends it.
                while server.openConnections == 0 { await Task.yield() }
                while server.openConnections > 0 {
                    server.clients.look()
                    time.advance(by: .seconds(1))
                    await Task.yield()
                }
                #expect(["", "HTTP/1.1 408"].contains(await client.everything().map { String($0.prefix(12)) }))
            }
        }
    }
}
