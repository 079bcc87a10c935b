import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Base
@testable import HTTPClient

/// Connections are made, kept and replaced by the rules.
extension HTTP2ConformanceTests {
    @Test("A new connection resumes the TLS session of an earlier one")
    func resumption() async throws {
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.respond(to: request)
        }
        defer { fixture.stop() }
        for number in 1...3 {
            #expect(try await fixture.send().get().newConnection)
            try await poll { fixture.server.closed == number }
        }
        #expect(fixture.server.resumed == 2)
    }

    @Test("A connection without a sign of life is replaced while its requests wait")
    func deadConnection() async throws {
        let time = ManualTime()
        let fixture = try HTTP2Fixture(time: time) { connection in
            connection.begin()
            guard connection.number == 1 else { return connection.respondToAll() }
            _ = connection.nextRequest()
            // Neither reads nor writes, as if the network had gone.
            connection.waitForEnd()
        }
        defer { fixture.stop() }
        async let first = fixture.send("first", deadline: .seconds(60))
        await fixture.server.waitForRequests(1)
        // The client might read the server's settings, a sign of life, only after the first step.
        for _ in 0..<3 {
            let rounds = fixture.client.counters.rounds
            time.advance(by: .seconds(5))
            try await poll { fixture.client.counters.rounds > rounds + 1 }
        }
        #expect(try await fixture.send("second").get().newConnection)
        time.advance(by: .seconds(60))
        #expect(await first.failure?.kind == .timeout)
        #expect(fixture.server.requests.map(\.body) == ["first", "second"])
    }

    @Test("A server that sends but does not read gets no more requests")
    func serverThatDoesNotRead() async throws {
        let time = ManualTime()
        let mayPing = DispatchSemaphore(value: 0)
        let fixture = try HTTP2Fixture(time: time, configure: { $0.maximumConnections = 1 }) { connection in
            connection.begin([(4, 1_000_000)])
            guard connection.number == 1 else { return connection.respondToAll() }
            connection.send(.windowUpdate(0, 1_000_000_000))
            _ = connection.nextRequest()
            // The client's output no longer fits into the buffers of the sockets.
            while mayPing.wait(timeout: .now() + 60) == .success {
                guard connection.send(Frame(.ping, Array(repeating: 0, count: 8)).bytes) else { return }
            }
        }
        defer { fixture.stop() }
        async let first = fixture.send("first", deadline: .seconds(60))
        await fixture.server.waitForRequests(1)
        let body = String(repeating: "x", count: 900_000)
        fixture.client.submit((1...30).map { _ in HTTPTransfer(post(fixture.server.url, body)) { _ in } })
        async let last = fixture.send("last", deadline: .seconds(60))
        try await poll { fixture.client.counters.inFlight == 32 }
        for _ in 0..<3 {
            let rounds = fixture.client.counters.rounds
            mayPing.signal()
            try await poll { fixture.client.counters.rounds > rounds + 1 }
            time.advance(by: .seconds(5))
        }
        #expect(try await last.get().newConnection)
        time.advance(by: .seconds(120))
        #expect(await first.failure?.kind == .timeout)
        try await poll {
            mayPing.signal()
            return fixture.server.closed == 1
        }
    }

    @Test("A server that sends megabytes that nobody asked for loses its connection")
    func unaskedData() async throws {
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.respond(to: request)
            guard connection.number == 1 else { return connection.hang() }
            // A frame of an unknown kind, which must be ignored.
            let frame = Frame(kind: 0xfa, flags: 0, stream: 0, payload: Array(repeating: 0, count: 16_000)).bytes
            while connection.send(frame) {}
        }
        defer { fixture.stop() }
        #expect(try await fixture.send("first").get().text == "first")
        try await poll { fixture.server.closed == 1 }
        #expect(try await fixture.send("second").get().text == "second")
    }

    @Test("A response that arrived before its request was cancelled counts")
    func cancelledAfterResponse() async throws {
        let (mayRespond, hasResponded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            guard let late = connection.nextRequest(), let other = connection.nextRequest() else { return }
            connection.respond(to: other)
            mayRespond.wait()
            connection.respond(to: late)
            hasResponded.signal()
            connection.hang()
        }
        defer { fixture.stop() }
        let (results, continuation) = AsyncStream.makeStream(of: Result<HTTPResponse, HTTPError>.self)
        let late = HTTPTransfer(post(fixture.server.url, "late")) { continuation.yield($0) }
        fixture.client.submit([late])
        await fixture.server.waitForRequests(1)
        // The client's thread is held up until the response waits in the socket.
        let other = HTTPTransfer(post(fixture.server.url, "other")) { _ in
            mayRespond.signal()
            hasResponded.wait()
            fixture.client.cancel(late)
        }
        fixture.client.submit([other])
        for await result in results {
            #expect(try result.get().text == "late")
            break
        }
    }

    @Test("A response that arrived before its deadline is read, however many reads that takes")
    func manySmallRecords() async throws {
        let time = ManualTime()
        let (mayRespond, hasResponded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let fixture = try HTTP2Fixture(time: time) { connection in
            connection.begin()
            guard let late = connection.nextRequest(), let other = connection.nextRequest() else { return }
            connection.respond(to: other)
            mayRespond.wait()
            connection.send(.headers(late.stream))
            // One TLS record each, so that one read brings one of them.
            for _ in 0..<200 { connection.send(Frame(.data, stream: late.stream, Array("x".utf8))) }
            connection.send(Frame(.data, flags: Frame.endStream, stream: late.stream))
            hasResponded.signal()
            connection.hang()
        }
        defer { fixture.stop() }
        async let late = fixture.send("late", deadline: .seconds(10))
        await fixture.server.waitForRequests(1)
        // The client's thread is held up until the deadline has passed.
        let other = HTTPTransfer(post(fixture.server.url, "other")) { _ in
            mayRespond.signal()
            hasResponded.wait()
            time.advance(by: .seconds(10))
        }
        fixture.client.submit([other])
        #expect(try await late.get().body.count == 200)
    }

    @Test(
        "A host whose IPv6 address refuses connections is reached at its IPv4 address",
    )
    func brokenAddress() async throws {
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            connection.respondToAll()
        }
        defer { fixture.stop() }
        // The server listens at 127.0.0.1 only. curl knows the addresses of this name without asking: ::1 comes first.
        let response = try await fixture.client.send(post("https://localhost:\(fixture.server.port)/", "reached"))
        #expect(response.text == "reached")
    }

    @Test(
        "A proxy that speaks TLS is noticed",
        arguments: [
            ("https_proxy", "https://proxy:3128", true), ("ALL_PROXY", "HTTPS://proxy", true),
            ("https_proxy", "http://proxy:3128", false), ("HTTPS_PROXY", "proxy:3128", false),
            ("http_proxy", "https://proxy", false),
        ]
    )
    func proxyWithTLS(name: String, value: String, isNoticed: Bool) {
        #expect(HTTP2Transport.environmentNamesTLSProxy { $0 == name ? value : nil } == isNoticed)
    }

    @Test("A proxy carries the connection")
    func proxy() async throws {
        await #expect(processExitsWith: .success) {
            let fixture = try HTTP2Fixture { connection in
                connection.begin()
                connection.respondToAll()
            }
            let proxy = try TunnelProxy()
            setenv("https_proxy", "http://127.0.0.1:\(proxy.port)", 1)
            try fixture.authority.issue("named", for: "DNS:server.example")
            let server = try FrameServer(fixture.authority, certificate: "named") { connection in
                connection.begin()
                connection.respondToAll()
            }
            let client = try makeClient { $0.caFile = fixture.authority.certificateFile }
            let response = try await client.send(post("https://server.example:\(server.port)/", "through"))
            precondition(response.text == "through" && response.isHTTP2)
            precondition(proxy.targets == ["server.example:\(server.port)"])
        }
    }

    @Test("A server without HTTP/2 is remembered, and its requests are not sent twice")
    func fallback() async throws {
        let fixture = try HTTP2Fixture(protocol: "http/1.1") { connection in
            var received: [UInt8] = []
            while !received.suffix(5).elementsEqual("token".utf8) {
                guard let more = connection.read() else { return }
                received += more
            }
            connection.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
        }
        defer { fixture.stop() }
        for number in 1...3 {
            let response = try await fixture.send().get()
            #expect(!response.isHTTP2 && response.text == "ok")
            // The first connection only found out that the server does not speak HTTP/2.
            #expect(fixture.server.accepted == number + 1)
        }
    }
}
