import TestSupport
import Testing

@testable import Base
@testable import HTTPServer

@Suite("Oversized and malformed requests are refused", .timeLimit(.minutes(10)))
struct LimitTests {
    private static let limit = HTTPServer.Configuration(limits: .init(bodyBytes: 100))

    private static func length(_ request: ServerRequest) async -> ServerReply {
        .respond(.text("\(request.body.count)"))
    }

    @Test("A body is accepted up to the limit and refused beyond it", arguments: [(100, 200), (101, 413), (1600, 413)])
    func bodyLimit(count: Int, status: Int) async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            let body = String(repeating: "x", count: count)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(count)\r\n\r\n\(body)")
            #expect(await client.answer()?.status == status)
            // The connection is still valid: the next request is not read as the rest of the body.
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
            #expect(await client.answer()?.body == "1")
        }
    }

    @Test("All bodies together stay within their memory, and small ones fit next to large ones")
    func requestMemory() async throws {
        let size = 60_000
        let body = String(repeating: "x", count: size)
        let post = { (length: Int) in "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n" }
        // On a busy machine the steps can take longer than a request's deadline, so no time passes.
        let configuration = HTTPServer.Configuration(requestMemoryBytes: 1 << 20)
        try await withServer(configuration, time: ManualTime(), handler: Self.length) { server in
            // Clients that never send their last byte fill the half for large bodies.
            var largeClients: [RawClient] = []
            for number in 1...8 {
                let largeClient = try RawClient(port: server.port)
                await largeClient.send(post(size + 1) + body)
                try await poll { server.requestMemory == number * size }
                largeClients.append(largeClient)
            }
            let large = try RawClient(port: server.port)
            await large.send(post(size) + body)
            #expect(await large.answer()?.status == 503)
            #expect(await large.everything() == "")
            #expect(server.requestMemory == 8 * size)
            let small = try RawClient(port: server.port)
            await small.send(post(8000) + body.prefix(8000))
            #expect(await small.answer()?.body == "8000")

            await largeClients[0].send("x")
            #expect(await largeClients[0].answer()?.body == "\(size + 1)")
            try await poll { server.requestMemory == 7 * size }
            let next = try RawClient(port: server.port)
            await next.send(post(size) + body)
            #expect(await next.answer()?.body == "\(size)")

            for largeClient in largeClients.dropFirst() { largeClient.hangUp() }
            try await poll { server.requestMemory == 0 }
        }
    }

    @Test("A hundred large bodies at once are accepted or refused, and the memory is released")
    func manyLargeBodies() async throws {
        let body = String(repeating: "x", count: 60_000)
        try await withServer(.init(requestMemoryBytes: 1 << 20), handler: Self.length) { server in
            await withTaskGroup { group in
                for _ in 0..<100 {
                    group.addTask {
                        guard let client = try? RawClient(port: server.port) else {
                            Issue.record("no connection")
                            return
                        }
                        await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n\(body)")
                        let status = await client.answer()?.status
                        #expect(status == 200 || status == 503)
                        #expect(server.requestMemory <= 1 << 19)
                    }
                }
            }
            try await poll { server.requestMemory == 0 }
        }
    }

    @Test(
        "A NUL in a header, at which libmicrohttpd would cut it off, is refused",
        arguments: [
            "Host: h\r\nX-A: a\0b", "Host: h\r\nX-A: a\0b\r\nX-B: c", "X-A: a\0b\r\nHost: h",
            "Host: h\r\nX-A: \0b", "Host: h\r\nX-A: a \0 b", "Host: h\0.example", "Host: h\r\nX-A\0b: a",
            "Host: h\r\nAuthorization: Bearer a\0\r\nX-B: a\0\0b",
            "Host: h\r\nAuthorization: Bearer a\0", "Authorization: Bearer a\0\r\nHost: h",
            "Authorization: Bearer a \0\r\nHost: h", "X-A: \0\r\nHost: h", "Host: h\r\nX-A:\0",
        ]
    )
    func hiddenText(headers: String) async throws {
        try await withServer(handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET / HTTP/1.1\r\n\(headers)\r\n\r\n")
            #expect(await client.answer()?.status == 400)
        }
    }

    @Test(
        "Blanks around a header's value are accepted",
        arguments: ["X-A:a", "X-A:  a  ", "X-A:", "X-A: ", "X-A:\ta\t", "X-A: a b", "Cookie: a=b; c=d"]
    )
    func blanks(header: String) async throws {
        try await withServer(handler: Self.length) { server in
            for headers in [
                "Host: h\r\n\(header)", "\(header)\r\nHost: h", "Host:  h\r\n\(header)\r\nX-B: b",
                "Host: h\n\(header)\nX-B: b",
            ] {
                let client = try RawClient(port: server.port)
                await client.send("GET /a?b=c%20d HTTP/1.1\r\n\(headers)\r\n\r\n")
                #expect(await client.answer()?.status == 200, "\(headers)")
            }
        }
    }

    @Test(
        "A target that is not a path, so that a proxy and the router would match it differently, is refused",
        arguments: ["x/v1", "x", "*", "?a=b", "ftp://h/v1", "http:/v1", "h:443", "%2Fv1"]
    )
    func notAPath(target: String) async throws {
        try await withServer(handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.answer()?.status == 400)
        }
    }

    @Test("A chunked body has the same limit")
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

    @Test("A client that expects 100-continue is refused before it sends too much")
    func expectTooMuch() async throws {
        try await withServer(Self.limit, handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n")
            #expect(await client.answer()?.status == 413)
        }
    }

    @Test("A client that expects 100-continue gets it")
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
    func farTooLarge() async throws {
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
                name: "chunk without a size",
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

    @Test("A request that stays incomplete leaves nothing open")
    func halfRequest() async throws {
        let time = ManualTime()
        try await withServer(time: time, handler: Self.length) { server in
            for request in ["GET", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab"] {
                let client = try RawClient(port: server.port)
                await client.send(request)
                client.closeSendingSide()
                async let everything = client.everything()
                // If libmicrohttpd waits for the rest, the deadline ends the request; the connection may be gone
                // already.
                try await poll(
                    until: { client.hasEnded },
                    step: {
                        time.advance(by: .seconds(1))
                        server.clients.checkAll()
                    }
                )
                let text = await everything
                #expect(["", "HTTP/1.1 408"].contains(text.map { String($0.prefix(12)) }))
            }
        }
    }
}
