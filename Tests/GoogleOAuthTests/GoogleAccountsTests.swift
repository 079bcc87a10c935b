import Crypto
import GoogleOAuth
import TestSupport
import Testing

@testable import Base
@testable import HTTPClient

/// The real client against a scripted server on this machine.
@Suite("Google's endpoints over a socket", .timeLimit(.minutes(10)))
struct GoogleAccountsTests {
    private func withAccounts(
        answering status: String,
        _ body: String,
        _ test: (GoogleOAuthAPI, ScriptedServer) async throws -> Void
    ) async throws {
        let server = try ScriptedServer { _ in answer(body, status: status) }
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.shutDown() }
        try await test(GoogleOAuthAPI(http: client, endpoints: try endpoints(server.port)), server)
    }

    private func endpoints(_ port: Int) throws -> GoogleEndpoints {
        let base = "http://127.0.0.1:\(port)"
        return GoogleEndpoints(
            token: try Endpoint("\(base)/token"),
            userinfo: try Endpoint("\(base)/userinfo"),
            tokeninfo: try Endpoint("\(base)/tokeninfo"),
            revocation: try Endpoint("\(base)/revoke")
        )
    }

    @Test("A refresh is one POST of the form to the token endpoint")
    func refresh() async throws {
        try await withAccounts(answering: "200 OK", #"{"access_token":"ya29.x","expires_in":3599}"#) { google, server in
            let answer = await google.refresh(Secret(sentToken), client: OAuthClientCredentials(id: "c")) { true }
            #expect(answer.verdict.tokens?.accessToken.reveal() == "ya29.x")
            #expect(answer.status == 200)
            let request = try #require(server.received.first)
            #expect(server.received.count == 1)
            #expect(request.head.hasPrefix("POST /token HTTP/1.1\r\n"))
            #expect(request.head.lowercased().contains("content-type: application/x-www-form-urlencoded\r\n"))
            #expect(!request.head.lowercased().contains("authorization"))
            #expect(
                String(decoding: request.body, as: UTF8.self)
                    == "client_id=c&refresh_token=\(sentToken.replacing("/", with: "%2F"))&grant_type=refresh_token"
            )
        }
    }

    @Test("A request with its tokens goes away with its answer, although its caller could still cancel it")
    func release() async throws {
        let server = try ScriptedServer { _ in answer("{}", status: "200 OK") }
        defer { server.stop() }
        let client = try HTTPClient()
        let google = GoogleOAuthAPI(http: client, endpoints: try endpoints(server.port))
        weak var kept: Probe?
        var cancellations: [@Sendable () -> Void] = []
        await withCheckedContinuation { continuation in
            let probe = Probe()
            kept = probe
            let submission = RefreshSubmission(
                token: Secret(sentToken),
                client: OAuthClientCredentials(id: "c"),
                mayStillSend: { true },
                receive: { [probe] _ in withExtendedLifetime(probe) { continuation.resume() } }
            )
            cancellations = google.refresh([submission])
        }
        client.shutDown()
        #expect(kept == nil)
        for cancel in cancellations { cancel() }
    }

    @Test("A refresh that may not be sent is not sent")
    func withheld() async throws {
        try await withAccounts(answering: "200 OK", #"{"access_token":"a"}"#) { google, server in
            let answer = await google.refresh(Secret(sentToken), client: OAuthClientCredentials(id: "c")) { false }
            #expect(answer.verdict.kind == .notSent)
            #expect(server.received.isEmpty)
        }
    }

    @Test("A refresh that waits behind other requests until its deadline counts as not sent")
    func expiredInQueue() async throws {
        let server = try ScriptedServer { _ in [.hang] }
        defer { server.stop() }
        let time = ManualTime()
        let client = try HTTPClient(configuration: .init(maximumInFlight: 1), time: time)
        defer { client.shutDown() }
        let google = GoogleOAuthAPI(http: client, endpoints: try endpoints(server.port))
        async let lookup = try? google.userInfo(accessToken: Secret("ya29.other"))
        await server.waitForRequests(1)
        // The deadlines are the same, so that the refresh's time ends while the lookup uses the only connection.
        async let refresh = google.refresh(Secret(sentToken), client: OAuthClientCredentials(id: "c")) { true }
        try await poll { client.counters.waiting > 0 }
        time.advance(by: .seconds(15))
        let answer = await refresh
        #expect(answer.verdict.kind == .notSent)
        #expect(answer.verdict.code == "expired")
        #expect(await lookup == nil)
        #expect(server.received.count == 1)
    }

    @Test("A refresh whose answer is lost is reported as unanswered")
    func lost() async throws {
        let server = try ScriptedServer { _ in [.close] }
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.shutDown() }
        let google = GoogleOAuthAPI(http: client, endpoints: try endpoints(server.port))
        let answer = await google.refresh(Secret(sentToken), client: OAuthClientCredentials(id: "c")) { true }
        #expect(answer.verdict.kind == .noAnswer)
        #expect(answer.verdict.code == "receive_failed")
        #expect(server.received.count == 1)
    }

    @Test("A redirect is not followed")
    func redirect() async throws {
        let server = try ScriptedServer { _ in
            answer("", status: "302 Found", headers: "Location: /elsewhere\r\n")
        }
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.shutDown() }
        let google = GoogleOAuthAPI(http: client, endpoints: try endpoints(server.port))
        let refreshed = await google.refresh(Secret(sentToken), client: OAuthClientCredentials(id: "c")) { true }
        #expect(refreshed.verdict.code == "http_302")
        #expect(server.received.count == 1)
    }

    @Test(
        "A revocation counts as done if Google reports the grant as ended",
        arguments: [
            ("200 OK", "", nil), ("200 OK", "{}", nil), ("200 OK", "OK\n", nil),
            ("200 OK", "\n<html>Sign in</html>", "http_200"),
            (
                "400 Bad Request", #"{"error":"invalid_token","error_description":"Token expired or revoked"}"#,
                nil
            ),
            ("400 Bad Request", #"{"error":"invalid_request"}"#, "http_400"), ("400 Bad Request", "<html>", "http_400"),
            ("404 Not Found", #"{"error":"invalid_token"}"#, "http_404"), ("503 Unavailable", "", "http_503"),
            ("302 Found", "", "http_302"), ("429 Too Many Requests", "", "http_429"),
        ] as [(String, String, String?)]
    )
    func revoke(status: String, body: String, code: String?) async throws {
        try await withAccounts(answering: status, body) { google, server in
            let reply = await google.revoke(Secret("1//0gToken")) { true }
            #expect(reply == code.map { .failed(.unavailable(code: $0)) } ?? .done)
            let request = try #require(server.received.first)
            #expect(request.head.hasPrefix("POST /revoke HTTP/1.1\r\n"))
            #expect(String(decoding: request.body, as: UTF8.self) == "token=1%2F%2F0gToken")
        }
    }

    @Test("A revocation that does not reach Google is not done")
    func revokeUnreachable() async throws {
        let client = try HTTPClient()
        defer { client.shutDown() }
        let port = try RefusingPort()
        let google = GoogleOAuthAPI(http: client, endpoints: try endpoints(port.number))
        #expect(await google.revoke(Secret("t")) { true } == .failed(.unavailable(code: "connect")))
        withExtendedLifetime(port) {}
    }

    @Test("The userinfo request has the token in its header")
    func userInfo() async throws {
        try await withAccounts(answering: "200 OK", #"{"sub":"107","email":"ann@example.com"}"#) { google, server in
            #expect(try await google.userInfo(accessToken: Secret("ya29.x")).googleUserID == "107")
            let request = try #require(server.received.first)
            #expect(request.head.hasPrefix("GET /userinfo HTTP/1.1\r\n"))
            #expect(request.head.contains("Authorization: Bearer ya29.x\r\n"))
        }
    }

    @Test("The tokeninfo request has the token in its body, which proxies do not log")
    func tokenInfo() async throws {
        try await withAccounts(answering: "200 OK", #"{"aud":"c","expires_in":"3560"}"#) { google, server in
            #expect(try await google.tokenInfo(accessToken: Secret("ya29.x")).audience == "c")
            let request = try #require(server.received.first)
            #expect(request.head.hasPrefix("POST /tokeninfo HTTP/1.1\r\n"))
            #expect(String(decoding: request.body, as: UTF8.self) == "access_token=ya29.x")
        }
    }

    @Test(
        "A failed lookup distinguishes a bad token from a bad endpoint",
        arguments: [
            (
                "400 Bad Request", #"{"error":"invalid_token","error_description":"Invalid Value"}"#,
                LookupError.refused
            ),
            ("401 Unauthorized", "", .refused), ("403 Forbidden", "", .unavailable(code: "http_403")),
            ("500 Server Error", "", .unavailable(code: "http_500")),
            ("200 OK", "<html>", .unavailable(code: "not_json")),
            ("200 OK", "{}", .unavailable(code: "flawed_answer")),
        ]
    )
    func lookUpFailures(status: String, body: String, failure: LookupError) async throws {
        try await withAccounts(answering: status, body) { google, _ in
            await #expect(throws: failure) { try await google.userInfo(accessToken: Secret("ya29.x")) }
            await #expect(throws: failure) { try await google.tokenInfo(accessToken: Secret("ya29.x")) }
        }
    }
}

extension GoogleOAuthAPI {
    /// Sends a refresh and waits for its verdict.
    fileprivate func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        let response = await withCheckedContinuation { caller in
            let submission = RefreshSubmission(token: token, client: client, mayStillSend: mayStillSend) {
                caller.resume(returning: $0)
            }
            _ = refresh([submission])
        }
        return ParsedRefreshResponse.reading(response, sent: [token])
    }
}

private final class Probe: Sendable {}
