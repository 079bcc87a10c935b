import HTTPServer
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Telemetry

@Suite("An immediate token", .timeLimit(.minutes(10)))
struct ImmediateTokenTests {
    @Test("A valid token gets the same response as by the slow path, and is audited once")
    func served() async throws {
        let fixture = try VendingFixture()
        let id = try await fixture.add()
        try await fixture.makeImmediatelyReadable()
        let response = try #require(fixture.sendImmediate([("scope", VendingFixture.gmail)]))
        #expect(response.status == 200 && response.token == "stored")
        #expect(fixture.audit.vends.map { $0["grant"]?.string } == [id.description])
        #expect(fixture.counters.lifetime.vends == ["served": 1])
        let other = await fixture.send([("scope", VendingFixture.gmail)])
        #expect(other.body == response.body)
        #expect(other.headers.map(\.value) == response.headers.map(\.value))
        #expect(fixture.audit.vends.count == 2 && fixture.audit.vends[0] == fixture.audit.vends[1])
    }

    @Test("A token is not vended if the audit fails")
    func withoutAudit() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        try await fixture.makeImmediatelyReadable()
        fixture.audit.refuse()
        #expect(fixture.sendImmediate()?.error == "503 audit_unavailable")
    }

    @Test(
        "Any request without a suitable stored token is left to the slow path, and audited once",
        arguments: [
            (query: [("min_ttl", "wrong")], credential: VendingFixture.credential, age: 0),
            (
                query: [("scope", "https://www.googleapis.com/auth/drive")], credential: VendingFixture.credential,
                age: 0
            ),
            (query: [], credential: "rwc_unknown", age: 0),
            (query: [], credential: VendingFixture.limitedCredential, age: 0),
            (query: [("min_ttl", "60")], credential: VendingFixture.credential, age: 3550),
        ] as [(query: [ServerRequest.Field], credential: String, age: Int)]
    )
    func left(query: [ServerRequest.Field], credential: String, age: Int) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        try await fixture.makeImmediatelyReadable()
        fixture.time.advance(by: .seconds(age))
        #expect(fixture.sendImmediate(query, credential: credential) == nil)
        #expect(fixture.audit.vends.isEmpty && fixture.counters.lifetime.vends.isEmpty)
    }

    @Test("A grant that cannot be read immediately, or is disconnected, is left to the slow path")
    func unread() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(fixture.sendImmediate() == nil)
        let now = fixture.time.now
        try await fixture.change { $0.disconnect(reason: .invalidGrant, at: now) }
        try await fixture.makeImmediatelyReadable()
        #expect(fixture.sendImmediate() == nil)
        #expect(fixture.audit.vends.isEmpty)
    }
}
