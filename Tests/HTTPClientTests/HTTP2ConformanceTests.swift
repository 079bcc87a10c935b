import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import HTTPClient

/// The rules of ``HTTPClient`` over HTTP/2.
@Suite(
    "HTTP/2",
    .timeLimit(.minutes(10)),
    .enabled(if: Tool.openssl.isInstalled, "openssl is not installed, so no certificates can be made")
)
struct HTTP2ConformanceTests {
    @Test(
        "A response comes with its status, headers and body, and the counters show it",
    )
    func plainResponse() async throws {
        let fixture = try HTTP2Fixture { connection in
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
            #expect(response.isHTTP2)
            #expect(response.newConnection == (number == 1))
        }
        let counters = fixture.client.counters
        #expect(counters.newConnections == 1 && counters.reusedConnections == 2)
        #expect(counters.completed == 3)
        #expect(counters.inFlight == 0 && counters.waiting == 0)
    }

    @Test(
        "Bodies of any size arrive whole, also through small windows",
        arguments: [0, 1, 100_000]
    )
    func bodies(length: Int) async throws {
        let fixture = try HTTP2Fixture(configure: { $0.maximumBodyBytes = 200_000 }) { connection in
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

    @Test("Hundreds of requests at once get each their own response")
    func many() async throws {
        let fixture = try HTTP2Fixture(configure: { $0.maximumInFlight = 300 }
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

    @Test("An interim response and trailers are left out")
    func interimResponse() async throws {
        let fixture = try HTTP2Fixture { connection in
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

    @Test("A response after many interim responses is complete")
    func manyInterimResponses() async throws {
        let link = String(repeating: "x", count: 960)
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            while let request = connection.nextRequest() {
                for _ in 0..<150 { connection.send(.headers(request.stream, status: 103, [("link", link)])) }
                connection.respond(to: request, "token")
            }
        }
        defer { fixture.stop() }
        let response = try await fixture.send().get()
        #expect(response.status == 200 && response.text == "token")
        #expect(response.header("link") == nil)
    }

    @Test("A response that does not wait for the request's body is complete")
    func earlyResponse() async throws {
        let fixture = try HTTP2Fixture { connection in
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
        arguments: waysToLose.indices
    )
    func lostRequest(index: Int) async throws {
        let (name, lose) = Self.waysToLose[index]
        let fixture = try HTTP2Fixture { connection in
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

    @Test("The received part of a response comes with its failure", arguments: [true, false])
    func partialResponse(closes: Bool) async throws {
        let fixture = try HTTP2Fixture { connection in
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
        arguments: [true, false]
    )
    func limits(isBody: Bool) async throws {
        let fixture = try HTTP2Fixture(
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

    @Test("A cancelled request ends its own stream only")
    func cancellation() async throws {
        let fixture = try HTTP2Fixture { connection in
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

    @Test("A response that comes after its deadline is ignored")
    func lateResponse() async throws {
        let time = ManualTime()
        let fixture = try HTTP2Fixture(time: time) { connection in
            connection.begin()
            guard let late = connection.nextRequest() else { return }
            time.advance(by: .seconds(4))
            guard let next = connection.nextRequest() else { return }
            connection.respond(to: late)
            connection.respond(to: next)
            connection.respondToAll()
        }
        defer { fixture.stop() }
        #expect(await fixture.send("late", deadline: .seconds(4)).failure?.kind == .timeout)
        #expect(try await fixture.send("next").get().text == "next")
        #expect(try await fixture.send("last").get().text == "last")
        #expect(fixture.server.accepted == 1)
    }

    @Test(
        "A response that arrived while the process was stopped past the deadline counts",
    )
    func responseBeforeDeadlineCheck() async throws {
        let time = ManualTime()
        let fixture = try HTTP2Fixture(time: time) { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.send(.headers(request.stream, status: 200, []))
            // Each frame is a TLS record, of which libcurl reads one at a time.
            for byte in "token".utf8 { connection.send(Frame(.data, flags: 0, stream: request.stream, [byte])) }
            connection.send(Frame(.data, flags: Frame.endStream, stream: request.stream, []))
            time.advance(by: .seconds(60))
            connection.hang()
        }
        defer { fixture.stop() }
        #expect(try await fixture.send().get().text == "token")
    }

    @Test("Shutting down ends all requests")
    func shutDown() async throws {
        let fixture = try HTTP2Fixture { connection in
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

    @Test("beforeSend is called once, and can prevent the request")
    func withheld() async throws {
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            connection.respondToAll()
        }
        defer { fixture.stop() }
        let calls = Mutex(0)
        for isAllowed in [false, true, false] {
            let result = await outcome { () throws(HTTPError) in
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
}
