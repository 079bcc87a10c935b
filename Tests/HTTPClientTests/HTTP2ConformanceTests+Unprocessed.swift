import Base
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import HTTPClient

/// Requests that the server has not processed are sent again, and no others.
extension HTTP2ConformanceTests {
    @Test(
        "A refused stream is repeated at most twice",
        arguments: [1, 9]
    )
    func refusedStream(refusals: Int) async throws {
        let fixture = try HTTP2Fixture { connection in
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
        let isRepeated = refusals == 1
        #expect(result.success?.text == (isRepeated ? "token" : nil))
        #expect(result.failure?.outcomeUnknown == (isRepeated ? nil : true))
        #expect(fixture.server.requests.count == (isRepeated ? 2 : 3))
    }

    @Test("A refused request that is not sent again counts as not sent")
    func refusedAndWithheld() async throws {
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            guard let request = connection.nextRequest() else { return }
            connection.send(.reset(request.stream, code: 7))
            connection.hang()
        }
        defer { fixture.stop() }
        let tries = Atomic(0)
        let result = await outcome { () throws(HTTPError) in
            try await fixture.client.send(post(fixture.server.url)) {
                tries.add(1, ordering: .relaxed).newValue == 1
            }
        }
        #expect(result.failure?.kind == .withheld)
        #expect(result.failure?.outcomeUnknown == false)
        #expect(fixture.server.requests.count == 1)
    }

    @Test("A stream that is refused after its response began is not repeated")
    func refusedLate() async throws {
        let fixture = try HTTP2Fixture { connection in
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
        let fixture = try HTTP2Fixture { connection in
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
    )
    func gracefulGoAway() async throws {
        let fixture = try HTTP2Fixture { connection in
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
        // More than ``HTTPClient/Configuration/maximumConnections`` of a client with few requests in flight.
        let draining = 6
        let fixture = try HTTP2Fixture { connection in
            connection.begin()
            guard connection.number <= draining else { return connection.respondToAll() }
            guard let request = connection.nextRequest() else { return }
            connection.send(.goAway(lastStream: request.stream))
            connection.hang()
        }
        defer { fixture.stop() }
        let ended = Atomic(0)
        for number in 1...draining {
            let request = HTTPTransfer(post(fixture.server.url, "unanswered")) { _ in
                ended.add(1, ordering: .relaxed)
            }
            fixture.client.submit([request])
            await fixture.server.waitForRequests(number)
        }
        #expect(try await fixture.send("answered").get().text == "answered")
        #expect(ended.load(ordering: .relaxed) == 0, "no connection had to end before")
        #expect(fixture.server.accepted == draining + 1)
    }

    @Test("An idle connection that the server closed costs no request")
    func idleClose() async throws {
        let fixture = try HTTP2Fixture { connection in
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
}
