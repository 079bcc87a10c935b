import Foundation
import Glibc
import TestSupport
import Testing

@testable import WorkerTokens

@Suite("The transport over a unix socket", .timeLimit(.minutes(10)))
struct UnixSocketTests {
    private static let found = """
        {"access_token":"ya29.first","token_type":"Bearer","expires_in":3599,"expires_at":"2026-11-21T09:00:00Z",\
        "granted_scopes":["openid"],"warning":null}
        """

    @Test("A token comes over it, and the worker sees a request as over TCP")
    func token() async throws {
        let server = try UnixServer(sending: Self.response(Self.found))
        let tokens = try WorkerTokens(unixSocket: server.path, credential: "credential-of-the-mailer")
        #expect(try await tokens.token(for: "alice", minimumLife: 300).value == "ya29.first")
        let request = await server.request(1)
        #expect(
            request == """
                GET /v1/grants/alice/token?min_ttl=300 HTTP/1.1\r
                Host: localhost\r
                Connection: close\r
                Authorization: Bearer credential-of-the-mailer\r
                Accept: application/json\r
                \r

                """
        )
    }

    @Test("The body of a renewal has its length")
    func renewal() async throws {
        let server = try UnixServer(sending: Self.response(Self.found))
        let tokens = try WorkerTokens(unixSocket: server.path, credential: "credential")
        let refused = try await tokens.token(for: "alice")
        _ = try await tokens.token(for: "alice", replacing: refused)
        let request = await server.request(2)
        #expect(request.hasPrefix("POST /v1/grants/alice/token/refresh HTTP/1.1\r\n"))
        #expect(request.hasSuffix("Content-Length: 29\r\n\r\n{\"access_token\":\"ya29.first\"}"))
    }

    @Test("Many callers of different users are served at one time")
    func manyCallers() async throws {
        let server = try UnixServer(sending: Self.response(Self.found), backlog: 1)
        let tokens = try WorkerTokens(unixSocket: server.path, credential: "credential")
        try await withThrowingTaskGroup { group in
            for number in 1...200 { group.addTask { _ = try await tokens.token(for: "user-\(number)") } }
            try await group.waitForAll()
        }
        #expect(server.requestCount == 200)
    }

    @Test("A large request arrives whole")
    func largeRequest() async throws {
        let long = String(repeating: "a", count: 2_000_000)
        let server = try UnixServer(
            sending: Self.response(Self.found.replacingOccurrences(of: "ya29.first", with: "b"))
        )
        let transport = try UnixSocketTransport(path: server.path)
        let response = try await transport.send(Self.request(body: Array(long.utf8)))
        #expect(response.status == 200)
        #expect(await server.request(1).utf8.count > long.utf8.count)
    }

    @Test("A worker that is silent ends with the deadline")
    func silentWorker() async throws {
        let server = try UnixServer(sending: nil)
        let transport = try UnixSocketTransport(path: server.path)
        await #expect(throws: UnixSocketError.timedOut) {
            try await transport.send(Self.request(), timeout: 0.05)
        }
        await server.waitForClosedConnections(1)
    }

    @Test("A cancelled task closes its connection")
    func cancelled() async throws {
        let server = try UnixServer(sending: nil)
        let transport = try UnixSocketTransport(path: server.path)
        let call = Task { try await transport.send(Self.request()) }
        _ = await server.request(1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        await server.waitForClosedConnections(1)
    }

    @Test(
        "A response that breaks off, or is none, is an error",
        arguments: ["HTTP/1.1 200 OK\r\nContent-Le", "SSH-2.0\r\n\r\n"]
    )
    func brokenResponse(text: String) async throws {
        let server = try UnixServer(sending: text)
        let transport = try UnixSocketTransport(path: server.path)
        // The end of the connection shows it, not the deadline.
        let error = await #expect(throws: UnixSocketError.self) { try await transport.send(Self.request()) }
        #expect(error == .closedEarly || error == .notHTTP)
    }

    @Test("A socket that is missing is an error that names the cause")
    func missingSocket() async throws {
        let tokens = try WorkerTokens(unixSocket: "/nonexistent/internal.sock", credential: "credential")
        await #expect(throws: TokenError.unreachable(description: "connect failed with errno \(ENOENT)")) {
            try await tokens.token(for: "alice")
        }
    }

    @Test(
        "A path that the system cannot take is refused",
        arguments: ["", String(repeating: "a", count: 108), "/a\u{0}b"]
    )
    func unusablePath(path: String) {
        #expect(throws: TokenError.self) { try UnixSocketTransport(path: path) }
    }

    private static func response(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static func request(body: [UInt8] = []) -> WorkerTokens.Request {
        WorkerTokens.Request(
            method: body.isEmpty ? "GET" : "POST",
            url: "http://localhost/x",
            target: "/x",
            headers: [],
            body: body
        )
    }
}
