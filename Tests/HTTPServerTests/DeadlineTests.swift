import TestSupport
import Testing

@testable import Base
@testable import HTTPServer

@Suite("Clients that take too long are disconnected", .timeLimit(.minutes(10)))
struct DeadlineTests {
    private static func echo(_ request: ServerRequest) async -> ServerReply { .respond(.text("\(request.body.count)")) }

    @Test("Idle connections get less time as connections run out")
    func scarceConnections() {
        let deadlines = ConnectionDeadlines(idle: .seconds(60))
        #expect(deadlines.idle(open: 0, of: 1000) == .seconds(60))
        #expect(deadlines.idle(open: 750, of: 1000) == .seconds(60))
        #expect(deadlines.idle(open: 875, of: 1000) == .seconds(30))
        #expect(deadlines.idle(open: 1000, of: 1000) == .seconds(1))
        #expect(deadlines.idle(open: 3, of: 1) == .seconds(1))
    }

    @Test(
        "An incomplete request is answered with 408 at its deadline",
        arguments: [
            ("GE", .head, 10), ("GET / HTTP/1.1\r\nHost: h\r\nX: ", .head, 10),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab", .body, 30),
            ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na", .body, 30),
        ] as [(String, ConnectionPhase.Kind, Int)]
    )
    func incompleteRequest(text: String, kind: ConnectionPhase.Kind, seconds: Int) async throws {
        let time = ManualTime()
        try await withServer(time: time, handler: Self.echo) { server in
            let client = try RawClient(port: server.port)
            await client.send(text)
            try await poll(until: { server.clients.kinds == [kind] }, step: server.clients.checkAll)
            time.advance(by: .milliseconds(seconds * 1000 - 1))
            server.clients.checkAll()
            #expect(server.clients.kinds == [kind])
            time.advance(by: .milliseconds(1))
            server.clients.checkAll()
            #expect(await client.everything()?.hasPrefix("HTTP/1.1 408 ") == true)
        }
    }

    @Test("Single bytes that arrive slowly do not keep a request alive")
    func singleBytes() async throws {
        let time = ManualTime()
        try await withServer(time: time, handler: Self.echo) { server in
            let client = try RawClient(port: server.port)
            await client.send("G")
            try await waitForPhase(server, isIdle: false)
            for byte in "ET / HTTP" {
                await client.send(String(byte))
                time.advance(by: .milliseconds(1200))
                server.clients.checkAll()
            }
            #expect(await client.everything()?.hasPrefix("HTTP/1.1 408 ") == true)
        }
    }

    @Test(
        "Pieces of a body that arrive slowly do not extend the time of their request",
        arguments: [
            SlowBody(head: "Content-Length: 100", piece: "a"),
            SlowBody(head: "Transfer-Encoding: chunked", piece: "1\r\na\r\n"),
        ]
    )
    func slowBody(_ body: SlowBody) async throws {
        let time = ManualTime()
        try await withServer(time: time, handler: Self.echo) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\n\(body.head)\r\n\r\n")
            try await poll { server.clients.kinds == [.body] }
            for second in 1...29 {
                time.advance(by: .seconds(1))
                await client.send(body.piece)
                try await poll { server.requestMemory == second }
                server.clients.checkAll()
                #expect(server.clients.kinds == [.body])
            }
            time.advance(by: .seconds(1))
            server.clients.checkAll()
            #expect(await client.everything()?.hasPrefix("HTTP/1.1 408 ") == true)
        }
    }

    struct SlowBody: Sendable {
        var head: String
        var piece: String
    }

    @Test("The time of a request ends with it: the next one on the connection has its own")
    func nextRequest() async throws {
        let time = ManualTime()
        try await withServer(time: time, handler: Self.echo) { server in
            let client = try RawClient(port: server.port)
            for _ in 1...3 {
                await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na")
                try await poll { server.requestMemory == 1 }
                time.advance(by: .seconds(29))
                server.clients.checkAll()
                await client.send("b")
                #expect(await client.answer()?.body == "2")
                try await waitForPhase(server, isIdle: true)
            }
        }
    }

    @Test("An idle connection is closed after the idle time, without a response")
    func idle() async throws {
        let time = ManualTime()
        try await withServer(time: time, handler: Self.echo) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.answer()?.body == "0")
            try await waitForPhase(server, isIdle: true)
            server.clients.checkAll()
            time.advance(by: .seconds(59))
            server.clients.checkAll()
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.answer()?.body == "0")
            try await waitForPhase(server, isIdle: true)
            time.advance(by: .seconds(60))
            server.clients.checkAll()
            #expect(await client.everything() == "")
        }
    }

    @Test("A client that does not read its response is disconnected")
    func unreadResponse() async throws {
        let time = ManualTime()
        let large = ServerResponse(body: Array(repeating: 0, count: 64 << 20))
        try await withServer(time: time, handler: { _ in .respond(large) }) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            try await poll { server.clients.kinds == [.responding] }
            time.advance(by: .seconds(30))
            server.clients.checkAll()
            try await poll { server.openRequests == 0 }
        }
    }

    @Test("The handler's time does not count against the client")
    func slowHandler() async throws {
        let time = ManualTime()
        let arrived = Event()
        let released = Event()
        let handler: HTTPServer.Handler = { _ in
            arrived.happen()
            await released.wait()
            return .respond(.text("late"))
        }
        try await withServer(time: time, handler: handler) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            await arrived.wait()
            time.advance(by: .seconds(3600))
            server.clients.checkAll()
            released.happen()
            #expect(await client.answer()?.body == "late")
        }
    }

    /// Waits until the server's only client is idle, or not idle.
    private func waitForPhase(_ server: HTTPServer, isIdle: Bool) async throws {
        try await poll {
            server.clients.checkAll()
            let kinds = server.clients.kinds
            return kinds.count == 1 && kinds.allSatisfy { if case .idle = $0 { isIdle } else { !isIdle } }
        }
    }
}
