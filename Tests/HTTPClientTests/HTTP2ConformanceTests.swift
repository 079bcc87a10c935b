import Clocks
import Foundation
import HTTPClient
import Synchronization
import TestSupport
import Testing

/// The rules of ``HTTPClient`` over HTTP/2, for both libraries that frame it.
@Suite(
    "HTTP/2, framed by nghttp2 and by libcurl",
    .timeLimit(.minutes(10)),
    .enabled(if: Tool.openssl.isInstalled, "openssl is not installed, so no certificates can be made")
)
struct HTTP2ConformanceTests {
    @Test(
        "A response comes with its status, headers and body, and the counters show it",
        arguments: HTTP2Framing.allCases
    )
    func plainResponse(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            while let request = connection.nextRequest() {
                connection.respond(to: request, status: 429, [("retry-after", "17"), ("x-empty", "")])
            }
        }
        defer { fixture.stop() }
        for number in 1...3 {
            let response = try await fixture.send("request").get()
            #expect(response.status == 429)
            #expect(response.text == "request")
            #expect(response.header("Retry-After") == "17")
            #expect(response.header("X-EMPTY") == "")
            #expect(response.header("x-other") == nil)
            #expect(response.httpVersion == .http2)
            #expect(response.newConnection == (number == 1))
        }
        let counters = fixture.client.counters
        #expect(counters.newConnections == 1 && counters.reusedConnections == 2)
        #expect(counters.http2Responses == 3 && counters.http1Responses == 0)
        #expect(counters.bytesSent == 21 && counters.bytesReceived == 21)
        #expect(counters.inFlight == 0 && counters.waiting == 0)
    }

    @Test(
        "Bodies of any size arrive whole, also through small windows",
        arguments: HTTP2Framing.allCases,
        [0, 1, 100_000]
    )
    func bodies(framing: HTTP2Framing, length: Int) async throws {
        let fixture = try HTTP2Fixture(framing, configure: { $0.maximumBodyBytes = 200_000 }) { connection in
            connection.begin([(4, 1000)])
            var body: [UInt8] = []
            while let frame = connection.nextFrame() {
                let isData = frame.kind == Frame.Kind.data.rawValue
                guard isData || frame.kind == Frame.Kind.headers.rawValue else { continue }
                if isData {
                    body += frame.payload
                    if !frame.payload.isEmpty { connection.send(.windowUpdate(0, frame.payload.count)) }
                    if !frame.isEnd { connection.send(.windowUpdate(frame.stream, frame.payload.count)) }
                }
                guard frame.isEnd else { continue }
                connection.send(.headers(frame.stream))
                for start in stride(from: 0, to: body.count, by: 9000) {
                    connection.send(
                        Frame(.data, stream: frame.stream, Array(body[start..<min(start + 9000, body.count)]))
                    )
                }
                connection.send(Frame(.data, flags: Frame.endStream, stream: frame.stream))
                body = []
            }
        }
        defer { fixture.stop() }
        let body = String((0..<length).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
        for _ in 0..<2 { #expect(try await fixture.send(body).get().text == body) }
        #expect(fixture.server.accepted == 1)
    }

    @Test("Hundreds of requests at once get each their own response", arguments: HTTP2Framing.allCases)
    func many(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(
            framing,
            configure: { $0 = .init(maximumInFlight: 300).with(framing, $0.caFile) }
        ) {
            $0.begin()
            $0.respondToAll()
        }
        defer { fixture.stop() }
        let results = await fixture.sendTogether(1000)
        #expect(results.enumerated().allSatisfy { $1.success?.text == "request \($0 + 1)" })
        #expect(fixture.server.requests.count == 1000)
        #expect(fixture.server.peakOpenStreams <= 100)
    }

    @Test("An interim response and trailers are left out", arguments: HTTP2Framing.allCases)
    func interimResponse(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            while let request = connection.nextRequest() {
                connection.send(.headers(request.stream, status: 103, [("retry-after", "1")]))
                connection.send(.headers(request.stream))
                connection.send(Frame(.data, stream: request.stream, Array("final".utf8)))
                let trailers = Frame.field("x-trailer", "1")
                let flags = Frame.endHeaders | Frame.endStream
                connection.send(Frame(.headers, flags: flags, stream: request.stream, trailers))
            }
        }
        defer { fixture.stop() }
        let response = try await fixture.send().get()
        #expect(response.status == 200 && response.text == "final")
        #expect(response.header("retry-after") == nil)
    }

    @Test("A response that does not wait for the request's body is complete", arguments: HTTP2Framing.allCases)
    func earlyResponse(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin([(4, 10)])
            // The window is known from the second request on.
            guard let first = connection.nextRequest() else { return }
            connection.respond(to: first)
            while let frame = connection.nextFrame() {
                guard frame.kind == Frame.Kind.data.rawValue, frame.payload.count == 10 else { continue }
                connection.send(.headers(frame.stream, status: 401))
                connection.send(Frame(.data, flags: Frame.endStream, stream: frame.stream, Array("early".utf8)))
                connection.send(.reset(frame.stream, code: 0))
            }
        }
        defer { fixture.stop() }
        _ = try await fixture.send("").get()
        for _ in 0..<2 {
            let response = try await fixture.send(String(repeating: "x", count: 1000)).get()
            #expect(response.status == 401 && response.text == "early")
        }
    }

    // MARK: Failures

    /// The ways in which a server ends a request without a response.
    private static let waysToLose: [(String, @Sendable (FrameConnection, FrameRequest) -> Bool)] = [
        (
            "resets the stream",
            {
                $0.send(.reset($1.stream, code: 2)); return true
            }
        ),
        (
            "resets the stream without an error",
            {
                $0.send(.reset($1.stream, code: 0)); return true
            }
        ),
        ("closes the connection", { _, _ in false }),
        (
            "ends the stream without headers",
            { connection, request in
                connection.send(Frame(.data, flags: Frame.endStream, stream: request.stream))
                return true
            }
        ),
        (
            "sends an invalid frame",
            { connection, request in
                connection.send(Frame(.windowUpdate, stream: 0, [0, 0, 0, 0]))
                return true
            }
        ),
        (
            "ends the connection after the request",
            { connection, request in
                connection.send(.goAway(lastStream: request.stream, code: 0))
                return false
            }
        ),
        (
            "sends a length that is not the body's",
            { connection, request in
                connection.send(.headers(request.stream, [("content-length", "9")]))
                connection.send(Frame(.data, flags: Frame.endStream, stream: request.stream, [0x78]))
                return true
            }
        ),
    ]

    @Test(
        "A request without a response has an unknown outcome and is not repeated",
        arguments: HTTP2Framing.allCases,
        waysToLose.indices
    )
    func lostRequest(framing: HTTP2Framing, index: Int) async throws {
        let (name, lose) = Self.waysToLose[index]
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            while let request = connection.nextRequest() {
                guard request.body == "lose" else {
                    connection.respond(to: request)
                    continue
                }
                guard lose(connection, request) else { return }
            }
        }
        defer { fixture.stop() }
        let failure = await fixture.send("lose").failure
        #expect(failure?.outcomeUnknown == true, "a server that \(name): \(String(describing: failure))")
        #expect(failure?.kind == .receiveFailed, "a server that \(name): \(String(describing: failure))")
        #expect(fixture.server.requests.count == 1, "a server that \(name)")
        #expect(try await fixture.send().get().status == 200, "a server that \(name)")
    }

    @Test("The received part of a response comes with its failure", arguments: HTTP2Framing.allCases, [true, false])
    func partialResponse(framing: HTTP2Framing, closes: Bool) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.send(.headers(request.stream))
            connection.send(Frame(.data, stream: request.stream, Array("whole".utf8)))
            if !closes { connection.hang() }
        }
        defer { fixture.stop() }
        let failure = await fixture.send(deadline: .seconds(closes ? 10 : 1)).failure
        #expect(failure?.kind == (closes ? .receiveFailed : .timeout))
        #expect(failure?.outcomeUnknown == true)
        #expect(failure?.partialResponse?.status == 200)
        #expect(failure?.partialResponse?.text == "whole")
    }

    @Test(
        "A body or headers over the limit end their own stream only",
        arguments: HTTP2Framing.allCases,
        [true, false]
    )
    func limits(framing: HTTP2Framing, isBody: Bool) async throws {
        let fixture = try HTTP2Fixture(
            framing,
            configure: {
                $0.maximumBodyBytes = 1000
                $0.maximumHeaderBytes = 3000
            },
            script: { connection in
                connection.begin()
                while let request = connection.nextRequest() {
                    let isLong = request.body == "long"
                    let fields = [("x-long", String(repeating: "h", count: isLong && !isBody ? 3000 : 1000))]
                    let body = String(repeating: "b", count: isLong && isBody ? 1001 : 1000)
                    connection.respond(to: request, body, fields)
                }
            }
        )
        defer { fixture.stop() }
        #expect(try await fixture.send().get().body.count == 1000)
        let failure = await fixture.send("long").failure
        #expect(failure?.kind == (isBody ? .bodyTooLarge : .headersTooLarge))
        #expect(failure?.outcomeUnknown == true)
        #expect(failure?.partialResponse?.body.count == (isBody ? 1000 : nil))
        #expect(try await fixture.send().get().body.count == 1000)
        #expect(fixture.server.accepted == 1)
    }

    @Test("A cancelled request ends its own stream only", arguments: HTTP2Framing.allCases)
    func cancellation(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            while let request = connection.nextRequest() {
                if request.body != "hang" { connection.respond(to: request) }
            }
        }
        defer { fixture.stop() }
        let task = Task { await fixture.send("hang") }
        await fixture.server.waitForRequests(1)
        task.cancel()
        let failure = await task.value.failure
        #expect(failure?.kind == .cancelled)
        #expect(failure?.outcomeUnknown == true)
        // libcurl tells the server with the next request.
        #expect(try await fixture.send().get().text == "token")
        await fixture.server.waitForResets(1)
        #expect(fixture.server.accepted == 1)
    }

    @Test("A response that comes after its deadline is ignored", arguments: HTTP2Framing.allCases)
    func lateResponse(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            guard let late = connection.nextRequest(), let next = connection.nextRequest() else { return }
            connection.respond(to: late)
            connection.respond(to: next)
            connection.respondToAll()
        }
        defer { fixture.stop() }
        #expect(await fixture.send("late", deadline: .seconds(1)).failure?.kind == .timeout)
        #expect(try await fixture.send("next").get().text == "next")
        #expect(try await fixture.send("last").get().text == "last")
        #expect(fixture.server.accepted == 1)
    }

    @Test(
        "A response that arrived while the process was stopped past the deadline counts",
        arguments: HTTP2Framing.allCases
    )
    func responseBeforeDeadlineCheck(framing: HTTP2Framing) async throws {
        let time = ManualTime()
        let fixture = try HTTP2Fixture(framing, time: time) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.respond(to: request)
            time.advance(by: .seconds(60))
            connection.hang()
        }
        defer { fixture.stop() }
        #expect(try await fixture.send().get().text == "token")
    }

    @Test("Shutting down ends all requests", arguments: HTTP2Framing.allCases)
    func shutDown(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            while connection.nextRequest() != nil {}
        }
        defer { fixture.stop() }
        let tasks = (1...3).map { number in Task { await fixture.send("\(number)") } }
        await fixture.server.waitForRequests(3)
        fixture.client.shutDown()
        for task in tasks {
            let failure = await task.value.failure
            #expect(failure?.kind == .shutDown && failure?.outcomeUnknown == true)
        }
    }

    @Test("beforeSend is called once, and can prevent the request", arguments: HTTP2Framing.allCases)
    func withheld(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            connection.respondToAll()
        }
        defer { fixture.stop() }
        let calls = Mutex(0)
        for isAllowed in [false, true, false] {
            let result = await outcome { () throws(HTTPFailure) in
                try await fixture.client.send(post(fixture.server.url)) {
                    calls.withLock { $0 += 1 }
                    return isAllowed
                }
            }
            #expect(result.success?.status == (isAllowed ? 200 : nil))
            #expect(result.failure?.kind == (isAllowed ? nil : .withheld))
            #expect(result.failure?.outcomeUnknown != true)
        }
        #expect(calls.withLock { $0 } == 3)
        #expect(fixture.server.requests.count == 1)
    }

    // MARK: Requests that the server has not processed

    @Test(
        "A refused stream is repeated at most twice, and only if nghttp2 frames it",
        arguments: HTTP2Framing.allCases,
        [1, 9]
    )
    func refusedStream(framing: HTTP2Framing, refusals: Int) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            var refused = 0
            while let request = connection.nextRequest() {
                refused += 1
                if refused <= refusals {
                    connection.send(.reset(request.stream, code: 7))
                } else {
                    connection.respond(to: request)
                }
            }
        }
        defer { fixture.stop() }
        let result = await fixture.send()
        let isRepeated = framing == .nghttp2 && refusals == 1
        #expect(result.success?.text == (isRepeated ? "token" : nil))
        #expect(result.failure?.outcomeUnknown == (isRepeated ? nil : true))
        if framing == .nghttp2 { #expect(fixture.server.requests.count == (refusals == 1 ? 2 : 3)) }
    }

    @Test("A stream that is refused after its response began is not repeated", arguments: HTTP2Framing.allCases)
    func refusedLate(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.send(.headers(request.stream))
            connection.send(.reset(request.stream, code: 7))
            connection.respondToAll()
        }
        defer { fixture.stop() }
        #expect(await fixture.send().failure?.outcomeUnknown == true)
        #expect(fixture.server.requests.count == 1)
    }

    @Test("After GOAWAY, processed requests end, others are repeated on a new connection")
    func goAway() async throws {
        let fixture = try HTTP2Fixture(.nghttp2) { connection in
            connection.begin()
            guard connection.number == 1 else { return connection.respondToAll() }
            let requests = (1...4).compactMap { _ in connection.nextRequest() }
            connection.send(.goAway(lastStream: requests[1].stream))
            for request in requests.prefix(2) { connection.respond(to: request, "first connection") }
            connection.hang()
        }
        defer { fixture.stop() }
        let texts = await fixture.sendTogether(4).map { $0.success?.text }
        #expect(texts == ["first connection", "first connection", "request 3", "request 4"])
        #expect(fixture.server.requests.count == 6)
        #expect(fixture.server.accepted == 2)
        #expect(try await fixture.send().get().newConnection == false)
    }

    @Test(
        "After a graceful GOAWAY, requests in flight end, and the next gets a new connection",
        arguments: HTTP2Framing.allCases
    )
    func gracefulGoAway(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.send(.goAway(lastStream: Int32.max))
            connection.respond(to: request)
            connection.hang()
        }
        defer { fixture.stop() }
        for _ in 0..<3 { #expect(try await fixture.send().get().text == "token") }
        #expect(fixture.server.accepted == 3)
    }

    @Test("Connections that only finish their requests leave room for others")
    func manyDrainingConnections() async throws {
        // More than ``HTTPClient/Configuration/connectionsOverHTTP2`` of a client with few requests in flight.
        let draining = 6
        let fixture = try HTTP2Fixture(.nghttp2) { connection in
            connection.begin()
            guard connection.number <= draining else { return connection.respondToAll() }
            guard let request = connection.nextRequest() else { return }
            connection.send(.goAway(lastStream: request.stream))
            connection.hang()
        }
        defer { fixture.stop() }
        let ended = Atomic(0)
        for number in 1...draining {
            let request = HTTPClient.Submission(post(fixture.server.url, "unanswered")) { _ in
                ended.add(1, ordering: .relaxed)
            }
            fixture.client.submit([request])
            await fixture.server.waitForRequests(number)
        }
        #expect(try await fixture.send("answered").get().text == "answered")
        #expect(ended.load(ordering: .relaxed) == 0, "no connection had to end before")
        #expect(fixture.server.accepted == draining + 1)
    }

    @Test("An idle connection that the server closed costs no request", arguments: HTTP2Framing.allCases)
    func idleClose(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.respond(to: request)
        }
        defer { fixture.stop() }
        for number in 1...4 {
            #expect(try await fixture.send().get().text == "token")
            try await poll { fixture.server.closed == number }
        }
        #expect(fixture.server.accepted == 4)
    }

    // MARK: The server's limits

    @Test("No more requests are open than the server allows", arguments: HTTP2Framing.allCases)
    func maximumStreams(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(
            framing,
            configure: { $0.maximumConnections = 1 },
            script: { connection in
                connection.begin([(3, 1)])
                guard let first = connection.nextRequest() else { return }
                connection.respond(to: first)
                var number = 1
                while let request = connection.nextRequest() {
                    number += 1
                    // The limit is raised and lowered again, while requests wait.
                    if number == 20 { connection.send(.settings([(3, 5)])) }
                    if number == 40 { connection.send(.settings([(3, 1)])) }
                    connection.respond(to: request)
                }
            }
        )
        defer { fixture.stop() }
        #expect(try await fixture.send().get().text == "token")
        let results = await fixture.sendTogether(60)
        #expect(results.enumerated().allSatisfy { $1.success?.text == "request \($0 + 1)" })
        #expect(fixture.server.peakOpenStreams <= 5)
        #expect(fixture.server.accepted == 1)
    }

    @Test("A request that gets no window to send its body fails at its deadline", arguments: HTTP2Framing.allCases)
    func exhaustedWindow(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin([(4, 0)])
            connection.hang()
        }
        defer { fixture.stop() }
        let failure = await fixture.send(deadline: .seconds(1)).failure
        #expect(failure?.kind == .timeout)
        #expect(failure?.outcomeUnknown == true)
    }

    @Test("Large responses do not exhaust the windows that the client grants", arguments: HTTP2Framing.allCases)
    func largeResponses(framing: HTTP2Framing) async throws {
        let body = String(repeating: "x", count: 65_536)
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            while let request = connection.nextRequest() {
                connection.send(.headers(request.stream))
                for start in stride(from: 0, to: body.utf8.count, by: 16_384) {
                    let isLast = start + 16_384 == body.utf8.count
                    let part = Array(body.utf8.dropFirst(start).prefix(16_384))
                    connection.send(Frame(.data, flags: isLast ? Frame.endStream : 0, stream: request.stream, part))
                }
            }
        }
        defer { fixture.stop() }
        let results = await fixture.sendTogether(100)
        #expect(results.allSatisfy { $0.success?.body.count == 65_536 })
    }

    @Test("A PING is answered", arguments: HTTP2Framing.allCases)
    func ping(framing: HTTP2Framing) async throws {
        let fixture = try HTTP2Fixture(framing) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            let payload: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
            connection.send(Frame(.ping, payload))
            while let frame = connection.nextFrame() {
                guard frame == Frame(.ping, flags: Frame.acknowledgement, payload) else { continue }
                connection.respond(to: request, "answered")
            }
        }
        defer { fixture.stop() }
        #expect(try await fixture.send().get().text == "answered")
    }

    /// The ways in which a server keeps the client busy without a response.
    private static let floodFrames: [(String, @Sendable (FrameRequest) -> [UInt8])] = [
        ("PING", { _ in Frame(.ping, [0, 0, 0, 0, 0, 0, 0, 0]).bytes }),
        ("SETTINGS", { _ in Frame.settings([(1, 4096)]).bytes }),
        ("empty DATA", { Frame(.data, stream: $0.stream).bytes }),
        ("CONTINUATION", { Frame(.continuation, stream: $0.stream, Frame.field("x-a", "1")).bytes }),
        ("RST_STREAM", { Frame.reset($0.stream, code: 8).bytes }),
        ("interim responses", { Frame.headers($0.stream, status: 103, [("x-a", "1")]).bytes }),
    ]

    @Test(
        "A server that floods the client delays nothing beyond the deadline, and other servers not at all",
        arguments: floodFrames.indices
    )
    func floods(index: Int) async throws {
        let (name, frame) = Self.floodFrames[index]
        // libcurl 7.88 reads such frames in one call for as long as they arrive.
        let fixture = try HTTP2Fixture(.nghttp2) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            if name == "CONTINUATION" { connection.send(Frame(.headers, stream: request.stream, [0x88])) }
            if name == "empty DATA" { connection.send(.headers(request.stream)) }
            let flood = Array(repeatElement(frame(request), count: 200).joined())
            while connection.send(flood) {}
        }
        defer { fixture.stop() }
        let other = try FrameServer(fixture.authority) { connection in
            connection.begin()
            connection.respondToAll()
        }
        defer { other.stop() }
        async let flooded = fixture.send(deadline: .seconds(2))
        await fixture.server.waitForRequests(1)
        #expect(try await fixture.client.send(post(other.url, "other")).text == "other", "\(name)")
        let failure = await flooded.failure
        #expect(failure?.outcomeUnknown == true, "\(name)")
    }

    // MARK: Connections

    @Test("A new connection resumes the TLS session of an earlier one")
    func resumption() async throws {
        // With TLS 1.3, libcurl 7.88 does not keep the tickets of connections that it frames itself.
        let fixture = try HTTP2Fixture(.nghttp2) { connection in
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
        let fixture = try HTTP2Fixture(.nghttp2, time: time) { connection in
            connection.begin()
            guard connection.number == 1 else { return connection.respondToAll() }
            _ = connection.nextRequest()
            // Neither reads nor writes, as if the network had gone.
            connection.waitForEnd()
        }
        defer { fixture.stop() }
        async let first = fixture.send("first", deadline: .seconds(60))
        await fixture.server.waitForRequests(1)
        for _ in 0..<2 {
            let rounds = fixture.client.counters.rounds
            time.advance(by: .seconds(5))
            try await poll { fixture.client.counters.rounds > rounds + 1 }
        }
        #expect(try await fixture.send("second").get().newConnection)
        time.advance(by: .seconds(60))
        #expect(await first.failure?.kind == .timeout)
        #expect(fixture.server.requests.map(\.body) == ["first", "second"])
    }

    @Test("A proxy carries the connection")
    func proxy() async throws {
        await #expect(processExitsWith: .success) {
            let fixture = try HTTP2Fixture(.nghttp2) { connection in
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
            precondition(response.text == "through" && response.httpVersion == .http2)
            precondition(proxy.targets == ["server.example:\(server.port)"])
        }
    }

    @Test("A server without HTTP/2 is remembered, and its requests are not sent twice")
    func fallback() async throws {
        let fixture = try HTTP2Fixture(.nghttp2, protocol: "http/1.1") { connection in
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
            #expect(response.httpVersion == .http1 && response.text == "ok")
            // The first connection only found out that the server does not speak HTTP/2.
            #expect(fixture.server.accepted == number + 1)
        }
    }
}

extension HTTPClient.Configuration {
    fileprivate func with(_ framing: HTTP2Framing, _ caFile: String?) -> Self {
        var configuration = self
        configuration.http2Framing = framing
        configuration.caFile = caFile
        return configuration
    }
}
