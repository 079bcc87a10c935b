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
        let world = try VendWorld()
        let id = try await world.add()
        try await world.readPromptly()
        let answer = try #require(world.askPromptly([("scope", VendWorld.gmail)]))
        #expect(answer.status == 200 && answer.token == "stored")
        #expect(world.audit.vends.map { $0["grant"]?.string } == [id.description])
        #expect(world.counters.running.counts.vends == ["served": 1])
        let other = await world.ask([("scope", VendWorld.gmail)])
        #expect(other.body == answer.body)
        #expect(other.headers.map(\.value) == answer.headers.map(\.value))
        #expect(world.audit.vends.count == 2 && world.audit.vends[0] == world.audit.vends[1])
    }

    @Test("A token is not vended if the audit fails")
    func withoutAudit() async throws {
        let world = try VendWorld()
        try await world.add()
        try await world.readPromptly()
        world.audit.refuse()
        #expect(world.askPromptly()?.error == "503 audit_unavailable")
    }

    @Test(
        "Any request without a suitable stored token is left to the slow path, and audited once",
        arguments: [
            (query: [("min_ttl", "wrong")], credential: VendWorld.credential, age: 0),
            (query: [("scope", "https://www.googleapis.com/auth/drive")], credential: VendWorld.credential, age: 0),
            (query: [], credential: "rwc_unknown", age: 0),
            (query: [], credential: VendWorld.limitedCredential, age: 0),
            (query: [("min_ttl", "60")], credential: VendWorld.credential, age: 3550),
        ] as [(query: [ServerRequest.Field], credential: String, age: Int)]
    )
    func left(query: [ServerRequest.Field], credential: String, age: Int) async throws {
        let world = try VendWorld()
        try await world.add()
        try await world.readPromptly()
        world.time.advance(by: .seconds(age))
        #expect(world.askPromptly(query, credential: credential) == nil)
        #expect(world.audit.vends.isEmpty && world.counters.running.counts.vends.isEmpty)
    }

    @Test("A grant that cannot be read immediately, or is disconnected, is left to the slow path")
    func unread() async throws {
        let world = try VendWorld()
        try await world.add()
        #expect(world.askPromptly() == nil)
        let now = world.time.now
        try await world.change { $0.disconnect(reason: .invalidGrant, at: now) }
        try await world.readPromptly()
        #expect(world.askPromptly() == nil)
        #expect(world.audit.vends.isEmpty)
    }
}
