import Clocks
import HTTPServer
import JSON
import Observability
import Store
import Testing

@Suite("An immediate token", .timeLimit(.minutes(10)))
struct PromptTokenTests {
    @Test("A valid token is answered as by the slow path, and audited once")
    func served() async throws {
        let fixture = try VendingFixture()
        let id = try await fixture.add()
        try await fixture.readPromptly()
        let answer = try #require(fixture.askPromptly([("scope", VendingFixture.gmail)]))
        #expect(answer.status == 200 && answer.token == "stored")
        #expect(fixture.audit.vends.map { $0["grant"]?.string } == [id.description])
        #expect(fixture.counters.lifetime.counts.vends == ["served": 1])
        let other = await fixture.ask([("scope", VendingFixture.gmail)])
        #expect(other.body == answer.body)
        #expect(other.headers.map(\.value) == answer.headers.map(\.value))
        #expect(fixture.audit.vends.count == 2 && fixture.audit.vends[0] == fixture.audit.vends[1])
    }

    @Test("A token is not vended if the audit fails")
    func withoutAudit() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        try await fixture.readPromptly()
        fixture.audit.refuse()
        #expect(fixture.askPromptly()?.error == "503 audit_unavailable")
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
        try await fixture.readPromptly()
        fixture.time.advance(by: .seconds(age))
        #expect(fixture.askPromptly(query, credential: credential) == nil)
        #expect(fixture.audit.vends.isEmpty && fixture.counters.lifetime.counts.vends.isEmpty)
    }

    @Test("A grant that cannot be read immediately, or is disconnected, is left to the slow path")
    func unread() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        #expect(fixture.askPromptly() == nil)
        let now = fixture.time.now
        try await fixture.change { $0.disconnect(reason: .invalidGrant, at: now) }
        try await fixture.readPromptly()
        #expect(fixture.askPromptly() == nil)
        #expect(fixture.audit.vends.isEmpty)
    }
}
