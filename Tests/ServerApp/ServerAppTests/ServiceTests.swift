import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import Synchronization
import Testing
import Vapor
import WorkerTokens

@testable import Examples

// HTTPClient.shared is one for all tests.
@Suite("The examples for servers", .serialized)
struct ServiceTests {
    private static let secret = "the secret that signs the notices, too"
    private let tokens: WorkerTokens
    private let notices: NoticeVerifier

    init() throws {
        tokens = try WorkerTokens(
            baseURL: "https://worker.example.com",
            credential: "credential-of-the-mailer",
            transport: sendWithAsyncHTTPClient
        )
        notices = try NoticeVerifier(secrets: Self.secret)
    }

    @Test("Both servers read mail, with a token that replaces a refused one")
    func mail() async throws {
        let refused = Mutex<Set<String>>([])
        HTTPClient.shared.respond { request in
            guard request.url.hasPrefix("https://gmail.") else {
                let number = refused.withLock { $0.count } + 1
                return Self.token("ya29.\(number)")
            }
            let bearer = request.headers.first(name: "Authorization") ?? ""
            let isFirst = refused.withLock { $0.isEmpty }
            refused.withLock { _ = $0.insert(bearer) }
            return isFirst ? HTTPClientResponse(status: .unauthorized) : HTTPClientResponse(status: .ok, body: bearer)
        }
        let mail = try await hummingbird("GET mail/:user")
        #expect(mail as? String == "Bearer ya29.2")

        let same = try await vapor("GET mail/:user")
        #expect(same as? String == "Bearer ya29.2")

        let sent = HTTPClient.shared.sent.filter { $0.request.url.hasPrefix("https://worker.") }
        #expect(sent.map(\.request.method) == [.RAW(value: "GET"), .RAW(value: "POST")])
        #expect(sent[0].request.url == "https://worker.example.com/v1/grants/alice/token?min_ttl=60")
        #expect(sent[0].request.headers.first(name: "authorization") == "Bearer credential-of-the-mailer")
        #expect(sent[1].request.body?.bytes == Array(#"{"access_token":"ya29.1"}"#.utf8))
        #expect(sent[1].timeout == .seconds(60))
    }

    @Test("A user who must sign in again gets 409 from both")
    func signInAgain() async throws {
        HTTPClient.shared.respond { _ in
            HTTPClientResponse(
                status: .conflict,
                body: #"{"error":"reauth_required","message":"m","reason":"invalid_rapt"}"#
            )
        }
        let error = await #expect(throws: HTTPError.self) {
            try await hummingbird("GET mail/:user")
        }
        #expect(error?.status == .conflict)
        let abort = await #expect(throws: Abort.self) {
            try await vapor("GET mail/:user")
        }
        #expect(abort?.status == .conflict)
    }

    @Test("A wait is passed on by both")
    func tryAgain() async throws {
        HTTPClient.shared.respond { _ in
            HTTPClientResponse(
                status: .serviceUnavailable,
                headers: ["retry-after": "7"],
                body: #"{"error":"unavailable","message":"m","reason":"http_503"}"#
            )
        }
        let error = await #expect(throws: HTTPError.self) {
            try await hummingbird("GET mail/:user")
        }
        #expect(error?.headers[.retryAfter] == "7")
        let abort = await #expect(throws: Abort.self) {
            try await vapor("GET mail/:user")
        }
        #expect(abort?.headers.first(name: "Retry-After") == "7")
    }

    @Test("A forged notice gets 401 from both")
    func forgedNotice() async throws {
        let headers: KeyValuePairs = [
            "webhook-id": "msg_1",
            "webhook-timestamp": String(Int(Date().timeIntervalSince1970)),  // time: allowed
            "webhook-signature": "v1,bm90IHRoZSBzaWduYXR1cmU=",
        ]
        let status = try await hummingbird("POST google-notices", headers: headers)
        #expect(status as? HTTPResponse.Status == .unauthorized)
        let other = try await vapor("POST google-notices", headers: headers)
        #expect(other as? HTTPStatus == .unauthorized)
    }

    @Test("A notice without a signature gets 400 from both")
    func unsignedNotice() async throws {
        let status = try await hummingbird("POST google-notices")
        #expect(status as? HTTPResponse.Status == .badRequest)
        let other = try await vapor("POST google-notices")
        #expect(other as? HTTPStatus == .badRequest)
    }

    private func hummingbird(
        _ route: String,
        headers: KeyValuePairs<String, String> = [:]
    ) async throws -> (any Hummingbird.ResponseGenerator)? {
        let router = Router<BasicRequestContext>()
        addRoutes(to: router, tokens: tokens, notices: notices)
        var fields: HTTPFields = [:]
        for (name, value) in headers {
            let fieldName = try #require(HTTPField.Name(name))
            fields[fieldName] = value
        }
        return try await router.respond(route, parameters: ["user": "alice"], headers: fields, body: "{}")
    }

    private func vapor(
        _ route: String,
        headers: KeyValuePairs<String, String> = [:]
    ) async throws -> (any Vapor.AsyncResponseEncodable)? {
        let app = Application()
        addRoutes(to: app, tokens: tokens, notices: notices)
        var fields: HTTPHeaders = [:]
        for (name, value) in headers {
            fields.add(name: name, value: value)
        }
        return try await app.respond(route, parameters: ["user": "alice"], headers: fields, body: "{}")
    }

    private static func token(_ value: String) -> HTTPClientResponse {
        HTTPClientResponse(
            status: .ok,
            body: """
                {"access_token":"\(value)","token_type":"Bearer","expires_in":3599,"expires_at":"2026-11-21T09:00:00Z",\
                "granted_scopes":[],"warning":null}
                """
        )
    }
}
