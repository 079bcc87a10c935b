import Synchronization
import TestSupport
import Testing

@testable import HTTPServer

@Suite("Hostile clients are contained", .timeLimit(.minutes(10)))
struct HostileClientTests {
    private static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    private static func length(_ request: ServerRequest) async -> ServerReply {
        .respond(.text("\(request.body.count)"))
    }

    struct Head: Sendable, CustomTestStringConvertible {
        let text: String
        let status: Int
        var testDescription: String { String(text.prefix(60)) }

        init(_ line: String, _ fields: String..., body: String = "", status: Int = 400) {
            text = ([line] + fields).joined(separator: "\r\n") + "\r\n\r\n" + body
            self.status = status
        }
    }

    private static let post = "POST / HTTP/1.1"

    @Test(
        "An ambiguous head is refused, and the bytes after it are not read",
        arguments: [
            Head(post, "Host: h", "Content-Length: 5", "Transfer-Encoding: chunked", body: "0\r\n\r\n"),
            Head(post, "Host: h", "Content-Length: 5", "Content-Length: 3", body: "abcde"),
            Head(post, "Host: h", "Content-Length: 3", "Content-Length: 3", body: "abc"),
            Head(post, "Host: h", "Content-Length: 3, 3", body: "abc"),
            Head(post, "Host: h", "Content-Length: +1", body: "a"),
            Head(post, "Host: h", "Content-Length: 0x1", body: "a"),
            Head(post, "Host: h", "Content-Length: ", body: ""),
            Head(post, "Host: h", "Content-Length : 1", body: "a"),
            Head(post, "Host: h", "Content-Length: 18446744073709551617", body: "a", status: 413),
            Head(post, "Host: h", "Transfer-Encoding: identity"),
            Head(post, "Host: h", "Transfer-Encoding: gzip, chunked", body: "0\r\n\r\n"),
            Head(post, "Host: h", "Transfer-Encoding: xchunked", body: "0\r\n\r\n"),
            Head(post, "Host: h", "Transfer-Encoding: \u{b}chunked", body: "0\r\n\r\n"),
            Head(post, "Host: h", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body: "0\r\n\r\n"),
            Head("POST / HTTP/1.0", "Transfer-Encoding: chunked", body: "0\r\n\r\n"),
            Head(post, "Host: h", "Transfer-Encoding: chunked", body: "0x1\r\na\r\n0\r\n\r\n"),
            Head(post, "Host: h", "Transfer-Encoding: chunked", body: "-1\r\na\r\n0\r\n\r\n"),
            Head(post, "Host: h", "Transfer-Encoding: chunked", body: "1\r\naXX0\r\n\r\n"),
            Head(post, "Host: h", "Transfer-Encoding: chunked", body: "10000000000000001\r\na\r\n", status: 413),
            Head("GET / HTTP/1.1", "Host: a", "Host: b"),
            Head("GET / HTTP/1.1", "Host: a b"),
            Head("GET / HTTP/1.1", "Host: a/b"),
            Head("GET / HTTP/1.1", "Host: user@a"),
            Head("GET / HTTP/1.1", "X: y"),
            Head("GET / HTTP/1.1", "Host: h", "X Y: a"),
            Head("GET / HTTP/1.1", "Host: h", "X\0: a"),
            Head("GET / HTTP/1.1", "Host: h", "no colon"),
            Head("GET / HTTP/1.1", "Host: h", "X: a\rContent-Length: 3"),
            Head("GET / HTTP/1.1", "Host: h", "X: \u{7f}"),
            Head("GET / HTTP/1.1", " Host: h", "Host: h"),
            Head("GET /a\0b HTTP/1.1", "Host: h"),
            Head("GET /\0 HTTP/1.1", "Host: h"),
            Head("G\0ET / HTTP/1.1", "Host: h"),
            Head("GET  / HTTP/1.1", "Host: h"),
            Head("GET / HTTP/1.2", "Host: h", status: 505),
            Head("GET / HTTP/2.0", "Host: h", status: 505),
            Head("GET /\(String(repeating: "a", count: 8192)) HTTP/1.1", "Host: h", status: 414),
            Head("GET / HTTP/1.1", "Host: h", "X: \(String(repeating: "a", count: 32_768))", status: 431),
        ]
    )
    func ambiguousHead(_ row: Head) async throws {
        let handled = Mutex(0)
        let handler: HTTPServer.Handler = { _ in
            handled.withLock { $0 += 1 }
            return .respond(.text("handled"))
        }
        try await withServer(handler: handler) { server in
            let client = try RawClient(port: server.port)
            await client.send(row.text + Self.get)
            let answer = try #require(await client.everything())
            #expect(answer.hasPrefix("HTTP/1.1 \(row.status) "))
            #expect(!answer.contains("handled"))
            #expect(handled.withLock { $0 } == 0)
        }
    }

    @Test("The bytes after a chunked body are not read as a request")
    func afterChunked() async throws {
        try await withServer(handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send(
                "\(Self.post)\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;\na\r\n0\r\n\r\n" + Self.get
            )
            let answer = await client.answer()
            #expect(answer?.body == "1")
            #expect(answer?.head.contains("Connection: close") == true)
            #expect(await client.everything() == "")
        }
    }

    @Test("HTTP/1.0 clients are served")
    func oldClient() async throws {
        try await withServer(handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET / HTTP/1.0\r\n\r\n")
            #expect(await client.answer()?.body == "0")
            #expect(await client.everything() == "")
        }
    }

    @Test("An address may open a limited number of connections at a time")
    func perAddress() async throws {
        try await withServer(.init(maximumConnectionsPerAddress: 2), handler: Self.length) { server in
            var clients = try (0..<2).map { _ in try RawClient(port: server.port) }
            for client in clients {
                await client.send(Self.get)
                #expect(await client.answer()?.status == 200)
            }
            let third = try RawClient(port: server.port)
            await third.send(Self.get)
            #expect(await third.everything() == "")
            clients.removeLast().hangUp()
            try await poll { server.openConnections == 1 }
            let fourth = try RawClient(port: server.port)
            await fourth.send(Self.get)
            #expect(await fourth.answer()?.status == 200)
        }
    }

    @Test(
        "A trusted proxy has no connection limit, and names its clients and requests",
        arguments: ["X-Forwarded-For: 6.6.6.6, 192.0.2.7", "Forwarded: by=3.1.1.1;for=192.0.2.7;host=h;proto=https"]
    )
    func proxy(forwarding: String) async throws {
        let configuration = HTTPServer.Configuration(
            maximumConnectionsPerAddress: 1,
            trustedProxies: try TrustedProxies(["127.0.0.0/8"])
        )
        let names: HTTPServer.Handler = { .respond(.text("\($0.clientAddress) \($0.id)")) }
        try await withServer(configuration, handler: names) { server in
            let clients = try (0..<3).map { _ in try RawClient(port: server.port) }
            for client in clients {
                await client.send("GET / HTTP/1.1\r\nHost: h\r\n\(forwarding)\r\nX-Request-Id: a.b-1\r\n\r\n")
                let answer = await client.answer()
                #expect(answer?.body == "192.0.2.7 a.b-1")
                #expect(answer?.head.contains("Request-Id: a.b-1") == true)
                await client.send("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: a b\r\n\r\n")
                #expect(await client.answer()?.body.hasSuffix(" a b") == false)
            }
        }
    }

    @Test("Forwarding headers of other peers are ignored, and the log has no path")
    func untrustedPeer() async throws {
        let summaries = Mutex<[RequestSummary]>([])
        let finished = Event()
        let log: HTTPServer.Log = { summary in
            summaries.withLock { $0.append(summary) }
            finished.happen()
        }
        let router = Router([Route("GET", "/users/{id}") { request, _ in .respond(.text(request.clientAddress)) }])
        try await withServer(log: log, handler: router.answer) { server in
            let client = try RawClient(port: server.port)
            await client.send(
                "GET /users/secret?q=secret HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.7\r\nRequest-Id: forged\r\n\r\n"
            )
            let answer = await client.answer()
            #expect(answer?.body == "127.0.0.1")
            await finished.wait()
            let summary = try #require(summaries.withLock { $0.first })
            #expect(answer?.head.contains("Request-Id: \(summary.id)") == true)
            #expect(summary.id.count == 16)
            #expect(summary.route == "/users/{id}")
            #expect((summary.method, summary.status, summary.bytes) == ("GET", 200, 9))
            #expect(summary.address == "127.0.0.1")
            #expect(!String(describing: summary).contains("secret"))
        }
    }

    @Test("The handler responds only if the immediate handler does not")
    func immediateHandler() async throws {
        let immediateHandler: HTTPServer.ImmediateHandler = {
            $0.path == "/immediate" ? .respond(.text("immediate")) : nil
        }
        try await withServer(immediateHandler: immediateHandler, handler: { _ in .respond(.text("handler")) }) {
            server in
            let client = try RawClient(port: server.port)
            for path in ["immediate", "handler", "immediate", "handler"] {
                await client.send("GET /\(path) HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(await client.answer()?.body == path)
            }
        }
    }

    @Test("A connection ends after the allowed number of requests")
    func requestsPerConnection() async throws {
        try await withServer(.init(limits: .init(requestsPerConnection: 2)), handler: Self.length) { server in
            let client = try RawClient(port: server.port)
            await client.send(Self.get + Self.get + Self.get)
            #expect(await client.answer()?.head.contains("Connection: close") == false)
            #expect(await client.answer()?.head.contains("Connection: close") == true)
            #expect(await client.everything() == "")
        }
    }

    @Test("A thousand idle connections do not block other clients")
    func idleConnections() async throws {
        try await withServer(.init(threads: 2), handler: Self.length) { server in
            _ = try HTTPServer.raiseOpenFileLimit()
            let idle = try (0..<1000).map { _ in try RawClient(port: server.port) }
            let client = try RawClient(port: server.port)
            await client.send(Self.get)
            #expect(await client.answer()?.body == "0")
            try await poll { server.openConnections == idle.count + 1 }
        }
    }
}
