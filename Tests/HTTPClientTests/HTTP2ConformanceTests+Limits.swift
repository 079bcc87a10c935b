import Base
import Foundation
import TestSupport
import Testing

@testable import HTTPClient

/// The server's limits hold.
extension HTTP2ConformanceTests {
    @Test("No more requests are open than the server allows")
    func maximumStreams() async throws {
        let fixture = try HTTP2Fixture(
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

    @Test("A request that gets no window to send its body fails at its deadline")
    func exhaustedWindow() async throws {
        let time = ManualTime()
        let fixture = try HTTP2Fixture(time: time) { connection in
            connection.begin([(4, 0)])
            while let frame = connection.nextFrame() {
                if frame.kind == Frame.Kind.headers.rawValue { time.advance(by: .seconds(60)) }
            }
        }
        defer { fixture.stop() }
        let failure = await fixture.send(deadline: .seconds(60)).failure
        #expect(failure?.kind == .timeout)
        #expect(failure?.outcomeUnknown == true)
    }

    @Test("Large responses do not exhaust the windows that the client grants")
    func largeResponses() async throws {
        let body = String(repeating: "x", count: 65_536)
        let fixture = try HTTP2Fixture { connection in
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

    @Test("A PING is answered")
    func ping() async throws {
        let fixture = try HTTP2Fixture { connection in
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
        "A server that floods the client loses its request and its connection, and delays no other server",
        arguments: floodFrames.indices
    )
    func floods(index: Int) async throws {
        let (name, frame) = Self.floodFrames[index]
        let fixture = try HTTP2Fixture { connection in
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
        async let flooded = fixture.send()
        await fixture.server.waitForRequests(1)
        #expect(try await fixture.client.send(post(other.url, "other")).text == "other", "\(name)")
        let failure = await flooded.failure
        #expect(failure?.outcomeUnknown == true, "\(name)")
        #expect(failure.map { $0.kind != .timeout } == true, "\(name)")
        await fixture.server.waitForClosed(1)
    }
}
