import Scheduler
import SchedulerTestSupport
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Routes

@Suite("The profile")
struct ProfileTests {
    @Test("the profile shows the grant's state")
    func profile() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", .init(scope: "openid gmail"))
        let token = fixture.token(ofUser: "42")
        let before = try await fixture.send("GET", "/v1/user/me", token: token)
        #expect(before["message"] == .string("User profile retrieved successfully"))
        #expect(before["code"] == .number("200"))
        let fresh: [String: JSONValue] = [
            "name": .string(""), "email": .string("jane@example.com"), "created_on": .string("2027-01-15"),
            "created_at": .string("2027-01-15T08:00:00Z"),
            "gmail_account_connected": .bool(false), "gmail_connection": .null,
            "connections": .array([]),
        ]
        #expect(before.data?.object == fresh)

        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        let connected = try await fixture.send("GET", "/v1/user/me", token: token)
        #expect(connected.data?["gmail_account_connected"] == .bool(true))
        let connection: [String: JSONValue] = [
            "state": .string("active"), "reason": .null, "since": .string("2027-01-15T08:00:00Z"), "verified_at": .null,
            "expires_at": .null, "google_email": .string("jane@gmail.com"),
            "granted_scopes": .array([.string("openid"), .string("gmail")]),
        ]
        #expect(connected.data?["gmail_connection"]?.object == connection)
        #expect(connected.data?["name"] == .string("Jane Smith"))

        fixture.time.advance(by: .seconds(60))
        fixture.google.handleRefreshes { _ in .failure(.invalidGrant) }
        await #expect(throws: VendingError.self) {
            try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400))
        }
        let dead = try await fixture.send("GET", "/v1/user/me", token: token)
        #expect(dead.data?["gmail_account_connected"] == .bool(false))
        #expect(dead.data?["gmail_connection"]?["state"] == .string("disconnected"))
        #expect(dead.data?["gmail_connection"]?["reason"] == .string("invalid_grant"))
        #expect(dead.data?["gmail_connection"]?["since"] == .string("2027-01-15T08:01:00Z"))

        fixture.google.handleRefreshes { _ in .grant }
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//again")
        let reconnected = try await fixture.send("GET", "/v1/user/me", token: token)
        #expect(reconnected.data?["gmail_account_connected"] == .bool(true))
    }

    @Test("the name of the backend's token is shown, and wins over Google's")
    func name() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        func name(_ token: String) async throws -> String? {
            try await fixture.send("GET", "/v1/user/me", token: token).data?["name"]?.string
        }
        let named = fixture.sign { claims in
            claims.field("user_id", "42")
            claims.field("name", "Jane at the backend")
        }
        #expect(try await name(fixture.token(ofUser: "42")) == "")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        #expect(try await name(fixture.token(ofUser: "42")) == "Jane Smith")
        #expect(try await name(named) == "Jane at the backend")
        #expect(try await name(fixture.token(ofUser: "42")) == "Jane at the backend")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane again")
        #expect(try await name(fixture.token(ofUser: "42")) == "Jane at the backend")
    }
}
