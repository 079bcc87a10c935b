import AccountClient
import Foundation
import FoundationNetworking
import TestSupport
import Testing

@Suite("Requests", .timeLimit(.minutes(10)))
struct RequestTests {
    private let store = InMemoryTokenStore()

    @Test(
        "The backend must be https, or on this machine",
        arguments: [
            ("https://api.example.com", true), ("HTTPS://api.example.com/base/", true), ("http://127.0.0.1:8080", true),
            ("http://localhost:8080", true), ("http://[::1]:8080", true), ("http://api.example.com", false),
            ("http://127.0.0.1.example.com", false), ("ftp://api.example.com", false), ("api.example.com", false),
            ("https:", false),
        ]
    )
    func baseURL(text: String, isAccepted: Bool) throws {
        let url = try #require(URL(string: text))
        if isAccepted {
            _ = try AccountClient(baseURL: url, tokens: store)
        } else {
            #expect(throws: AccountError.insecureBaseURL) { try AccountClient(baseURL: url, tokens: store) }
        }
    }

    @Test(
        "The bearer is not sent to another server",
        arguments: [
            "https://api.example.com:444/x", "http://api.example.com/x", "https://example.com/x", "file:///etc/passwd",
            "https://api.example.com@example.com/x", "/x",
        ]
    )
    func foreignAddress(text: String) async throws {
        let client = try AccountClient(baseURL: try #require(URL(string: "https://api.example.com")), tokens: store)
        let request = URLRequest(url: try #require(URL(string: text)))
        await #expect(throws: AccountError.foreignAddress) { try await client.perform(request) }
    }

    @Test("A redirect is returned and not followed")
    func redirect() async throws {
        let otherServer = try Backend()
        let location = otherServer.url.absoluteString
        let backend = try Backend { _ in
            answer("moved", status: "307 Temporary Redirect", headers: "Location: \(location)/x\r\n")
        }
        try backend.signIn(into: store)
        #expect(try await backend.client(store).status() == 307)
        #expect(backend.requests.count == 1)
        #expect(otherServer.requests.isEmpty)
    }

    @Test("A call that is refused twice is sent twice, and the second response is returned")
    func refusedTwice() async throws {
        let backend = try Backend { request in
            request.line == "GET /things" ? answer(#"{"detail":"no"}"#, status: "401 Unauthorized") : nil
        }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        #expect(try await client.status() == 401)
        #expect(backend.requests.map(\.line) == ["GET /things", "POST /api/auth/refresh", "GET /things"])
        #expect(try await client.isSignedIn)
    }

    @Test("A request is repeated unchanged: method, body and the new bearer")
    func repeatedRequest() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        backend.refuseAccessToken()
        let client = try backend.client(store)
        var request = URLRequest(url: client.baseURL.appendingPathComponent("v1/things"))
        request.httpMethod = "POST"
        request.httpBody = Data("a body".utf8)
        request.setValue("Bearer of-the-caller", forHTTPHeaderField: "Authorization")
        let (data, response) = try await client.perform(request)
        #expect(response.statusCode == 200)
        #expect(String(decoding: data, as: UTF8.self) == #"{"path":"POST /v1/things"}"#)
        let sent = backend.requests.filter { $0.line == "POST /v1/things" }
        #expect(sent.map(\.body) == ["a body", "a body"])
        #expect(sent.map { $0.bearer?.suffix(8) } == ["access-1", "access-2"])
    }

    @Test("A body that can be sent only once is refused")
    func streamedBody() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        await #expect(throws: AccountError.unusableBody) {
            var request = URLRequest(url: client.baseURL)
            request.httpBodyStream = InputStream(data: Data("once".utf8))
            return try await client.perform(request)
        }
        #expect(backend.requests.isEmpty)
    }

    @Test("A cancelled call throws the error .cancelled")
    func cancelledCall() async throws {
        let backend = try Backend { _ in [.hang] }
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let call = Task { try await client.status() }
        await backend.waitForRequests(1)
        call.cancel()
        await #expect(throws: AccountError.cancelled) { try await call.value }
    }
}
