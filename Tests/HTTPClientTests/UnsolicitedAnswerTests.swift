import HTTPClient
import TestSupport
import Testing

@Suite("Answers over HTTP/1.1 that no request asked for", .timeLimit(.minutes(10)))
struct UnsolicitedAnswerTests {
    private static let strangersAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nstranger"

    /// The ways in which a server sends its answer together with one for another request.
    private static let scripts: [(String, @Sendable (String) -> [ScriptedServer.Step])] = [
        ("in the same segment", { own in [.send(withLength(own) + strangersAnswer)] }),
        (
            "after headers in a segment of their own",
            { own in
                [
                    .send("HTTP/1.1 200 OK\r\nContent-Length: \(own.utf8.count)\r\n\r\n"),
                    .send(own + strangersAnswer),
                ]
            }
        ),
        ("a moment later", { own in [.send(withLength(own)), .send(strangersAnswer)] }),
        ("once the next request is written", { own in [.send(withLength(own)), .awaitMore, .send(strangersAnswer)] }),
        (
            "after the last chunk",
            { own in
                let length = String(own.utf8.count, radix: 16)
                return [
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(length)\r\n\(own)\r\n0\r\n\r\n"),
                    .send(strangersAnswer),
                ]
            }
        ),
        (
            "behind more junk than one read takes",
            { own in
                [.send(withLength(own) + String(repeating: " ", count: 40_000) + strangersAnswer)]
            }
        ),
        (
            "under the name of HTTP/2",
            { own in
                [.send("HTTP/2 200 \r\nContent-Length: \(own.utf8.count)\r\n\r\n\(own)"), .send(strangersAnswer)]
            }
        ),
    ]

    private static func withLength(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test("never become the answer to another request", arguments: scripts.indices)
    func unsolicited(index: Int) async throws {
        let (name, script) = Self.scripts[index]
        let server = try ScriptedServer { received in script(String(decoding: received.body, as: UTF8.self)) }
        defer { server.stop() }
        let client = try makeClient { $0.maximumInFlight = 1 }
        for number in 1...5 {
            let response = try await client.send(post(server.url, "user-\(number)"))
            #expect(response.text == "user-\(number)", "a server that sends it \(name)")
        }
        #expect(server.accepted == 5)
    }
}
