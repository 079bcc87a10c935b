import TestSupport
import Testing

@testable import HTTPClient

@Suite("Unsolicited responses over HTTP/1.1", .timeLimit(.minutes(10)))
struct UnsolicitedResponseTests {
    private static let unsolicitedResponse = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nanother!"

    /// The ways in which a server sends its response together with an unsolicited one.
    private static let scripts: [(String, @Sendable (String) -> [ScriptedServer.Step])] = [
        ("in the same segment", { own in [.send(withLength(own) + unsolicitedResponse)] }),
        (
            "after headers in a separate segment",
            { own in
                [
                    .send("HTTP/1.1 200 OK\r\nContent-Length: \(own.utf8.count)\r\n\r\n"),
                    .send(own + unsolicitedResponse),
                ]
            }
        ),
        ("a moment later", { own in [.send(withLength(own)), .send(unsolicitedResponse)] }),
        (
            "once the next request is written",
            { own in [.send(withLength(own)), .awaitMore, .send(unsolicitedResponse)] }
        ),
        (
            "after the last chunk",
            { own in
                let length = String(own.utf8.count, radix: 16)
                return [
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(length)\r\n\(own)\r\n0\r\n\r\n"),
                    .send(unsolicitedResponse),
                ]
            }
        ),
        (
            "after more bytes than one read returns",
            { own in
                [.send(withLength(own) + String(repeating: " ", count: 40_000) + unsolicitedResponse)]
            }
        ),
        (
            "with HTTP/2 in its status line",
            { own in
                [.send("HTTP/2 200 \r\nContent-Length: \(own.utf8.count)\r\n\r\n\(own)"), .send(unsolicitedResponse)]
            }
        ),
    ]

    private static func withLength(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test("never become the response to another request", arguments: scripts.indices)
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
