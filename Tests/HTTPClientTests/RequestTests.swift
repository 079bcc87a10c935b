import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import HTTPClient

@Suite("Requests: limits, deadlines, cancellation, shutdown", .timeLimit(.minutes(10)))
struct RequestTests {
    @Test("Over HTTP/1.1 each request has its own connection, and the counters show it")
    func connections() async throws {
        let server = try ScriptedServer { _ in answer("ok") }
        defer { server.stop() }
        let client = try makeClient()
        for _ in 0..<5 { _ = try await client.send(post(server.url)) }
        #expect(server.accepted == 5)
        let counters = client.counters
        #expect(counters.requests == 5)
        #expect(counters.completed == 5)
        #expect(counters.newConnections == 5)
        #expect(counters.reusedConnections == 0)
        #expect(counters.inFlight == 0)
        #expect(counters.rounds > 0)
    }

    @Test("Requests of one pattern have their own bodies, and none gets data of another")
    func patterns() async throws {
        let server = try ScriptedServer { _ in answer("ok") }
        defer { server.stop() }
        let client = try makeClient { $0.maximumInFlight = 1 }
        let endpoint = try Endpoint(server.url)
        let form = RequestPattern(method: .post, endpoint: endpoint, headers: [("X-Form", "1")])
        let query = RequestPattern(method: .get, endpoint: try endpoint.below("query"), headers: [("X-Query", "1")])
        let requests = [
            HTTPRequest(form, body: HTTPBody(Array("first and long".utf8))), HTTPRequest(form, body: HTTPBody([])),
            HTTPRequest(form, body: HTTPBody(Array("third".utf8))), HTTPRequest(query, body: HTTPBody([])),
            HTTPRequest(query, body: HTTPBody([])), post(server.url, "own"), HTTPRequest(method: .get, url: server.url),
            HTTPRequest(form, body: HTTPBody(Array("last".utf8))),
        ]
        for request in requests { #expect(try await client.send(request).status == 200) }
        let received = server.received
        #expect(
            received.map { String(decoding: $0.body, as: UTF8.self) } == [
                "first and long", "", "third", "", "", "own", "", "last",
            ]
        )
        #expect(
            received.map { $0.head.split(separator: " ").prefix(2).joined(separator: " ") } == [
                "POST /token", "POST /token", "POST /token", "GET /token/query", "GET /token/query", "POST /token",
                "GET /token", "POST /token",
            ]
        )
        #expect(received.map { $0.head.contains("X-Form: 1\r\n") } == [1, 1, 1, 0, 0, 0, 0, 1].map { $0 == 1 })
        #expect(received.map { $0.head.contains("X-Query: 1\r\n") } == [0, 0, 0, 1, 1, 0, 0, 0].map { $0 == 1 })
        #expect(server.accepted == requests.count)
    }

    @Test("Two hundred requests at once share the allowed connections", arguments: [4, 8])
    func manyAtOnce(connections: Int) async throws {
        let arrived = Mutex(0)
        let server = try ScriptedServer { received in
            // As many requests as there are connections arrive before any of them is answered.
            arrived.withLock { $0 += 1 }
            let group = (received.number + connections - 1) / connections * connections
            while arrived.withLock({ $0 < group }) { sched_yield() }
            return answer(String(decoding: received.body, as: UTF8.self))
        }
        defer { server.stop() }
        let client = try makeClient { $0.maximumInFlight = connections }
        try await withThrowingTaskGroup { group in
            for number in 0..<200 {
                group.addTask {
                    let response = try await client.send(post(server.url, "request \(number)"))
                    #expect(response.text == "request \(number)")
                }
            }
            try await group.waitForAll()
        }
        #expect(server.received.count == 200)
        #expect(server.peakRequests == connections)
        #expect(client.counters.completed == 200)
    }

    @Test("A request whose connection is lost without an answer is sent once")
    func notRepeated() async throws {
        let server = try ScriptedServer { received in received.number == 2 ? [.close] : answer("ok") }
        defer { server.stop() }
        let client = try makeClient()
        _ = try await client.send(post(server.url))
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }.failure
        #expect(failure?.kind == .receiveFailed)
        #expect(failure?.outcomeUnknown == true)
        #expect(server.received.count == 2)
    }

    @Test("A request to a server that does not respond fails at the deadline of the configuration or of the request")
    func deadlines() async throws {
        let server = try ScriptedServer { _ in [.hang] }
        defer { server.stop() }
        let time = ManualTime()
        let shortConfigured = try makeClient(time: time) { $0.totalDeadline = .seconds(10) }
        let longConfigured = try makeClient(time: time)
        async let first = outcome { () throws(HTTPError) in try await shortConfigured.send(post(server.url)) }
        async let second = outcome { () throws(HTTPError) in
            try await longConfigured.send(post(server.url), deadline: .seconds(10))
        }
        await server.waitForRequests(2)
        time.advance(by: .seconds(10))
        for failure in [await first.failure, await second.failure] {
            #expect(failure?.kind == .timeout)
            #expect(failure?.outcomeUnknown == true)
        }
    }

    @Test("A request still waiting at its deadline is never sent, and its failure does not count as the server's")
    func deadlineWhileWaiting() async throws {
        let server = try ScriptedServer { _ in [.hang] }
        defer { server.stop() }
        let time = ManualTime()
        let client = try makeClient(time: time) { $0.maximumInFlight = 1 }
        async let first = outcome { () throws(HTTPError) in
            try await client.send(post(server.url), deadline: .seconds(3600))
        }
        await server.waitForRequests(1)
        async let second = outcome { () throws(HTTPError) in
            try await client.send(post(server.url), deadline: .seconds(15))
        }
        try await poll { client.counters.waiting == 1 }
        time.advance(by: .seconds(15))
        let failure = await second.failure
        #expect(failure?.kind == .expired)
        #expect(failure?.outcomeUnknown == false)
        time.advance(by: .seconds(3600))
        #expect(await first.failure?.outcomeUnknown == true)
        #expect(server.received.count == 1)
    }

    @Test("A request whose deadline passes between its start and its connection is not sent late")
    func neverLate() async throws {
        let server = try ScriptedServer { _ in answer("ok") }
        defer { server.stop() }
        let time = JumpingTime()
        let client = try makeClient(time: time)
        let failure = await outcome { () throws(HTTPError) in
            try await client.send(post(server.url)) {
                time.jumpAfterReadings(3)
                return true
            }
        }.failure
        #expect(failure?.kind == .expired)
        #expect(failure?.outcomeUnknown == false)
        #expect(server.received.isEmpty)
    }

    @Test("beforeSend is called once, at the start, and can prevent the request")
    func withheld() async throws {
        let server = try ScriptedServer { _ in answer("ok") }
        defer { server.stop() }
        let client = try makeClient()
        let calls = Mutex(0)
        let failure = await outcome { () throws(HTTPError) in
            try await client.send(post(server.url)) {
                calls.withLock { $0 += 1 }
                return false
            }
        }.failure
        #expect(failure?.kind == .withheld)
        #expect(failure?.outcomeUnknown == false)
        #expect(calls.withLock { $0 } == 1)
        #expect(server.accepted == 0)
        #expect(try await client.send(post(server.url)) { true }.status == 200)
    }

    @Test("Each of several requests submitted together gets its own result once")
    func several() async throws {
        let server = try ScriptedServer { received in
            String(decoding: received.body, as: UTF8.self) == "hang" ? [.hang] : answer("ok")
        }
        defer { server.stop() }
        let client = try makeClient()
        let (results, continuation) = AsyncStream.makeStream(of: (Int, Result<HTTPResponse, HTTPError>).self)
        let invalid = HTTPRequest(method: .get, url: server.url, headers: [("X-Line", "a\r\nb")])
        let requests = [post(server.url, "first"), invalid, post(server.url, "hang"), post(server.url, "last")]
        let transfers = requests.enumerated().map { number, request in
            HTTPTransfer(request) { continuation.yield((number, $0)) }
        }
        #expect(transfers.filter { $0.request.body != nil }.count == 3)
        client.submit(transfers)
        await server.waitForRequests(3)
        client.cancel(transfers[2])
        client.cancel(transfers[2])
        var received: [Int: Result<HTTPResponse, HTTPError>] = [:]
        for await (number, result) in results {
            #expect(received.updateValue(result, forKey: number) == nil, "\(number) completes once")
            if received.count == requests.count { break }
        }
        #expect(received[0]?.success?.status == 200 && received[3]?.success?.status == 200)
        #expect(received[1]?.failure?.kind == .invalidHeader)
        #expect(received[2]?.failure?.kind == .cancelled)
        for transfer in transfers {
            #expect(transfer.request.body == nil && transfer.result?.success == nil, "it holds no token after its end")
        }

        client.shutDown()
        let late = Mutex<[HTTPError.Kind?]>([])
        client.submit(
            [post(server.url), invalid].map { request in
                HTTPTransfer(request) { result in late.withLock { $0.append(result.failure?.kind) } }
            }
        )
        #expect(late.withLock { $0 } == [.invalidHeader, .shutDown])
    }

    @Test("Cancelling the task ends the request in flight and closes its connection")
    func cancelInFlight() async throws {
        let server = try ScriptedServer { _ in [.hang] }
        defer { server.stop() }
        let client = try makeClient()
        let task = Task { await outcome { () throws(HTTPError) in try await client.send(post(server.url)) } }
        await server.waitForRequests(1)
        task.cancel()
        let failure = await task.value.failure
        #expect(failure?.kind == .cancelled)
        #expect(failure?.outcomeUnknown == true)
        await server.waitForClosedConnections(1)
    }

    @Test("A task cancelled before it sends, or while it waits, sends nothing")
    func cancelBefore() async throws {
        let server = try ScriptedServer { _ in [.hang] }
        defer { server.stop() }
        let client = try makeClient { $0.maximumInFlight = 1 }
        let first = Task { await outcome { () throws(HTTPError) in try await client.send(post(server.url)) } }
        await server.waitForRequests(1)
        let waiting = Task { await outcome { () throws(HTTPError) in try await client.send(post(server.url)) } }
        try await poll { client.counters.waiting == 1 }
        waiting.cancel()
        #expect(await waiting.value.failure?.kind == .cancelled)
        #expect(await waiting.value.failure?.outcomeUnknown == false)
        first.cancel()
        _ = await first.value

        let early = Task {
            // It ends when the task is cancelled.
            try? await ManualTime().sleep(for: .seconds(1))
            return await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }
        }
        early.cancel()
        #expect(await early.value.failure?.kind == .cancelled)
        #expect(server.received.count == 1)
    }

    @Test("Shutting down ends all requests, works twice, and refuses later requests")
    func shutDown() async throws {
        let server = try ScriptedServer { _ in [.hang] }
        defer { server.stop() }
        let client = try makeClient { $0.maximumInFlight = 2 }
        let tasks = (0..<5).map { _ in
            Task { await outcome { () throws(HTTPError) in try await client.send(post(server.url)) } }
        }
        await server.waitForRequests(2)
        try await poll { client.counters.waiting == 3 }
        client.shutDown()
        client.shutDown()
        var unknown = 0
        for task in tasks {
            let failure = await task.value.failure
            #expect(failure?.kind == .shutDown)
            unknown += failure?.outcomeUnknown == true ? 1 : 0
        }
        #expect(unknown == 2)
        await server.waitForClosedConnections(2)
        let late = await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }.failure
        #expect(late?.kind == .shutDown)
        #expect(client.counters.failed == 5)
    }

    @Test("Shutting down on the client's own thread does not wait for itself")
    func shutDownOnOwnThread() async throws {
        let server = try ScriptedServer { _ in answer("ok") }
        defer { server.stop() }
        let box = Mutex<HTTPClient?>(try makeClient())
        let client = try #require(box.withLock { $0 })
        let response = await outcome { () throws(HTTPError) in
            try await client.send(post(server.url)) {
                box.withLock { $0?.shutDown() }
                return true
            }
        }
        #expect(response.failure?.kind == .shutDown)
    }

    @Test("A request that cannot be sent unchanged is refused")
    func invalidRequests() async throws {
        let client = try makeClient()
        for (name, value) in [("X-A", "1\r\nX-B: 2"), ("X-A", "1\0"), ("X A", "1"), ("", "1"), ("X-A:", "1")] {
            let request = HTTPRequest(method: .get, url: "https://example.com/", headers: [(name, value)])
            let result = await outcome { () throws(HTTPError) in try await client.send(request) }
            #expect(result.failure?.kind == .invalidHeader)
        }
        #expect(client.counters.requests == 0)
    }

    @Test("No printed form of a request or a response shows a secret")
    func noSecretShows() async throws {
        let secret = "s3cr3t-value"
        let server = try ScriptedServer { received in
            received.number == 1 ? answer("{\"access_token\":\"\(secret)\"}", headers: "X-T: \(secret)\r\n") : [.close]
        }
        defer { server.stop() }
        let client = try makeClient()
        let request = HTTPRequest(
            method: .post,
            url: server.url + "?token=\(secret)",
            headers: [("Authorization", "Bearer \(secret)")],
            body: HTTPBody(Array(secret.utf8))
        )
        let response = try await client.send(request)
        #expect(response.text.contains(secret))
        let failure = try #require(await outcome { () throws(HTTPError) in try await client.send(request) }.failure)
        let endpoint = request.pattern.endpoint
        var printed = ""
        for value in [request, response, failure, endpoint, request.body as Any, response.body] as [Any] {
            dump(value, to: &printed)
            printed += "\(value) \(String(reflecting: value))\n"
        }
        #expect(!printed.contains(secret))
        // The number of the port may contain that of a byte.
        let withoutPort = printed.replacing(":\(server.port)/", with: "/")
        #expect(!withoutPort.contains("115"), "the bytes of the secret as numbers")
        #expect("\(request)" == "POST http://127.0.0.1:\(server.port)/token")
    }
}

/// A clock that stands still, and jumps ahead an hour after a number of reads, as if the process had been stopped.
final class JumpingTime: TimeSource {
    private let readingsLeft = Mutex<Int?>(nil)

    var now: Timestamp { Timestamp(milliseconds: 0) }

    var sinceBoot: BootInstant {
        readingsLeft.withLock { remaining in
            guard let readings = remaining else { return BootInstant(milliseconds: 0) }
            remaining = readings - 1
            return BootInstant(milliseconds: readings > 0 ? 0 : 3_600_000)
        }
    }

    func sleep(for span: Duration) async throws(CancellationError) {}

    func jumpAfterReadings(_ count: Int) {
        readingsLeft.withLock { $0 = count }
    }
}
