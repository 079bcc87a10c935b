import Glibc
import Storage
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Routes

@Suite("The logs")
struct LoggingTests {
    @Test("contain no token, address or body at any level; grants are named by their ids")
    func withoutSecrets() async throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { close(ends[0]) }
        let fixture = try AccountFixture(logLevel: .debug, logDescriptor: ends[1])
        fixture.google.setAccount("ya29.jane")
        let token = fixture.token(ofUser: "user-42", email: "jane@example.com")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane", user: "user-42")
        _ = try await fixture.connect("ya29.unknown", refreshToken: "1//unknown", user: "user-42")
        let tokens = try await fixture.signIn()
        let second = try await fixture.refresh(tokens.refresh)
        _ = try await fixture.refresh(try #require(second["refresh_token"]?.string))
        fixture.time.advance(by: .seconds(60))
        _ = try await fixture.refresh(tokens.refresh)
        _ = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: token)
        let grant = try #require(try await fixture.grant(ofUser: "user-42")).id.description
        _ = try await fixture.send("DELETE", "/v1/user/me", token: token)
        await fixture.store.close()
        #expect(try await fixture.send("GET", "/v1/user/me", token: token).status == 500)

        close(ends[1])
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(ends[0], &bytes, bytes.count)
        let log = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) + fixture.lines.texts.joined()
        #expect(log.contains(grant))
        #expect(log.contains("request failed"))
        #expect(log.contains("a spent refresh token was presented"))
        let secrets = [
            "ya29", "1//", "jane", "user-42", token, tokens.access, tokens.refresh,
            try #require(second["refresh_token"]?.string), "eyJ",
        ]
        for secret in secrets { #expect(!log.contains(secret)) }
    }
}
