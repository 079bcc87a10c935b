import Crypto
import GoogleOAuth
import HTTPClient
import TestSupport
import Testing

@testable import Base

@Suite("The stream of security events", .timeLimit(.minutes(10)))
struct SecurityEventStreamTests {
    private static func keyFile(_ key: RSAPrivateKey) throws -> Secret {
        var file = JSONLine()
        file.field("type", "service_account")
        file.field("client_email", "w@p.iam.gserviceaccount.com")
        file.field("private_key_id", "k1")
        file.field("private_key", try key.pem().reveal())
        return Secret(utf8: file.bytes)
    }

    private func withStream(
        answering status: String,
        _ body: String,
        _ test: (SecurityEventStream, ScriptedServer, RSAPrivateKey) async throws -> Void
    ) async throws {
        let server = try ScriptedServer { _ in answer(body, status: status) }
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.shutDown() }
        let key = try TestKeys.key(2)
        let stream = SecurityEventStream(
            http: client,
            endpoint: try Endpoint("http://127.0.0.1:\(server.port)/"),
            account: try ServiceAccount(keyFile: Self.keyFile(key)),
            time: ManualTime()
        )
        try await test(stream, server, key)
    }

    @Test("is registered for every event and enabled, by the service account's own signature")
    func register() async throws {
        try await withStream(answering: "200 OK", "{}") { stream, server, key in
            try await stream.register(url: try Endpoint("https://api.example.com/v1/google/security-events"))
            let requests = server.received
            #expect(
                requests.map { $0.head.prefix { $0 != "\r\n" } } == [
                    "POST /v1beta/stream:update HTTP/1.1", "POST /v1beta/stream/status:update HTTP/1.1",
                ]
            )
            let order = try #require(requests.first.flatMap { JSONValue.object(in: $0.body) })
            #expect(order["delivery"]?["url"]?.string == "https://api.example.com/v1/google/security-events")
            #expect(order["events_requested"]?.array?.count == 7)
            #expect(requests.last.flatMap { JSONValue.object(in: $0.body) }?["status"]?.string == "enabled")
            let head = try #require(requests.first?.head)
            let line = try #require(head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: Bearer ") })
            let token = try SignedToken(String(line.dropFirst("Authorization: Bearer ".count)), limit: 8192)
            let numbers = try key.publicNumbers()
            #expect(try token.verifies(with: PublicKey(modulus: numbers.modulus, exponent: numbers.exponent)))
            #expect(token.keyID == "k1")
            #expect(token.claims["iss"]?.string == "w@p.iam.gserviceaccount.com")
            #expect(token.claims["sub"] == token.claims["iss"])
            #expect(token.claims["exp"]?.integer == 1_800_003_600)
        }
    }

    @Test("shows its configuration and status")
    func state() async throws {
        let body = #"{"delivery":{"url":"https://a/b"},"events_requested":["x"],"status":"disabled"}"#
        try await withStream(answering: "200 OK", body) { stream, _, _ in
            let state = try await stream.state()
            #expect(state.url == "https://a/b")
            #expect(state.status == "disabled")
            #expect(state.events == ["x"])
        }
    }

    @Test(
        "explains its errors",
        arguments: [
            ("400 Bad Request", SecurityEventStreamError.Reason.malformed, "authorized domain"),
            ("401 Unauthorized", .unauthenticated, "clock"),
            ("403 Forbidden", .forbidden, "Firebase"),
            ("404 Not Found", .noStream, "google-events register"),
            ("503 Unavailable", .unavailable(status: 503), "try again later"),
            ("302 Found", .unavailable(status: 302), "try again later"),
        ]
    )
    func failures(status: String, reason: SecurityEventStreamError.Reason, words: String) async throws {
        let body = #"{"error":{"message":"Because\u001b[2J."}}"#
        try await withStream(answering: status, body) { stream, _, _ in
            let failure = try #require(
                await #expect(throws: SecurityEventStreamError.self) { try await stream.verify(state: "x") }
            )
            #expect(failure.reason == reason)
            #expect(failure.description.contains(words))
            #expect(failure.description.hasSuffix("(Because [2J.)"))
        }
    }

    @Test(
        "is not requested with a file that is not a service account's key",
        arguments: [
            ("", "it is not a JSON object"), ("{}", "its type is not service_account"),
            (#"{"type":"authorized_user"}"#, "its type is not service_account"),
            (#"{"type":"service_account"}"#, "it has no client_email"),
            (#"{"type":"service_account","client_email":"a"}"#, "it has no private_key_id"),
            (#"{"type":"service_account","client_email":"a","private_key_id":"b"}"#, "it has no private_key"),
            (
                #"{"type":"service_account","client_email":"a","private_key_id":"b","private_key":"x"}"#,
                "its private_key: it is not an unencrypted private key in PEM"
            ),
        ]
    )
    func keyFiles(text: String, problem: String) {
        #expect(throws: FormatError(problem)) { try ServiceAccount(keyFile: Secret(text)) }
    }
}
