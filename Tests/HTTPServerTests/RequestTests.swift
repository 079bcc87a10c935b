import TestSupport
import Testing

@testable import Base
@testable import HTTPServer

/// Answers with a description of the request.
private func echo(_ request: ServerRequest) async -> ServerReply {
    let query = request.query.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
    let body = String(decoding: request.body, as: UTF8.self)
    return .respond(.text("\(request.method) \(request.path) [\(query)] \(request.header("x-test") ?? "-") <\(body)>"))
}

/// Runs the body against a server, then stops the server.
///
/// No request may stay open.
func withServer(
    _ configuration: HTTPServer.Configuration = .init(),
    time: any TimeSource = SystemTime(),
    log: HTTPServer.Log? = nil,
    immediateHandler: HTTPServer.ImmediateHandler? = nil,
    handler: @escaping HTTPServer.Handler,
    body: (HTTPServer) async throws -> Void
) async throws {
    let server = try HTTPServer(
        configuration: configuration,
        time: time,
        log: log,
        immediateHandler: immediateHandler,
        handler: handler
    )
    do {
        try await body(server)
    } catch {
        await server.stop(within: .zero)
        throw error
    }
    await server.stop(within: .seconds(10))
    #expect(server.openRequests == 0)
}

@Suite("Requests arrive complete, however they are split", .timeLimit(.minutes(10)))
struct RequestTests {
    @Test("Path, query, headers and body reach the handler")
    func wholeRequest() async throws {
        try await withServer(handler: echo) { server in
            let client = try RawClient(port: server.port)
            await client.send(
                "POST /a%20b?x=1&y=+ HTTP/1.1\r\nHost: h\r\nX-TEST: yes\r\nContent-Length: 5\r\n\r\nhello"
            )
            let answer = await client.answer()
            #expect(answer?.status == 200)
            #expect(answer?.body == "POST /a b [x=1,y= ] yes <hello>")
        }
    }

    @Test("A request that arrives byte by byte is one request")
    func splitPackets() async throws {
        // On a busy machine, so many packets may take longer than a head may take.
        try await withServer(time: ManualTime(), handler: echo) { server in
            let client = try RawClient(port: server.port)
            for byte in "POST /s HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" {
                await client.send(String(byte))
            }
            #expect(await client.answer()?.body == "POST /s [] - <abc>")
        }
    }

    @Test("A chunked body is joined")
    func chunked() async throws {
        try await withServer(handler: echo) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            await client.send("4\r\ndefg\r\n0\r\n\r\n")
            #expect(await client.answer()?.body == "POST /c [] - <abcdefg>")
        }
    }

    @Test("Pipelined requests are answered in their order")
    func pipelined() async throws {
        try await withServer(handler: echo) { server in
            let client = try RawClient(port: server.port)
            let paths = (0..<20).map { "/\($0)" }
            await client.send(paths.map { "POST \($0) HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok" }.joined())
            for path in paths { #expect(await client.answer()?.body == "POST \(path) [] - <ok>") }
        }
    }

    @Test("A client that has closed its sending side still gets its answer")
    func halfClosed() async throws {
        try await withServer(handler: echo) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET /h HTTP/1.1\r\nHost: h\r\n\r\n")
            client.closeSendingSide()
            #expect(await client.answer()?.body == "GET /h [] - <>")
            #expect(await client.everything() == "")
        }
    }

    @Test("HEAD is answered with the length and without the body")
    func head() async throws {
        try await withServer(handler: echo) { server in
            let client = try RawClient(port: server.port)
            await client.send("HEAD /h HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let answer = await client.answer(hasBody: false)
            #expect(answer?.status == 200)
            #expect(answer?.head.contains("Content-Length: 15") == true)
            #expect(await client.everything() == "")
        }
    }

    @Test("The peer's address is available", arguments: ["127.0.0.1", "::1"])
    func peer(address: String) async throws {
        try await withServer(
            .init(listen: .tcp(address: address, port: 0)),
            handler: { .respond(.text($0.peerAddress)) }
        ) { server in
            let client = try RawClient(port: server.port, address: address)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.answer()?.body == address)
        }
    }

    @Test("A dropped request gets no answer, and its connection ends")
    func drop() async throws {
        try await withServer(handler: { _ in .drop }) { server in
            let client = try RawClient(port: server.port)
            await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
            #expect(await client.everything() == "")
        }
    }

    @Test("A response's header cannot split the response in two")
    func splitHeader() async throws {
        let split = ServerResponse(headers: [("X-Echo", "a\r\nSet-Cookie: b")])
        try await withServer(handler: { _ in .respond(split) }) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = await client.answer()
            #expect(answer?.status == 500)
            #expect(answer?.head.contains("Set-Cookie") == false)
        }
    }
}
