import Clocks
import Store
import Testing

@testable import RefreshWorker

@Suite("users import brings in what is good and tells what is not", .timeLimit(.minutes(10)))
struct UserImportTests {
    /// What came of one import.
    private struct Result {
        var tally = GrantImport.Tally()
        var reports: [String] = []
    }

    private let time = ManualTime()

    private func run(_ text: String, into store: InMemoryStore, replacing: Bool = false) async throws -> Result {
        final class Reports {
            var lines: [String] = []
        }
        let reports = Reports()
        var users = UserImport(store: store, replacesExisting: replacing, time: time) { reports.lines.append($0) }
        try await users.feed(Array(text.utf8))
        try await users.finish()
        return Result(tally: users.tally, reports: reports.lines)
    }

    @Test("Every field is stored, from lines and from an array")
    func fields() async throws {
        let store = InMemoryStore(timeSource: time)
        let text = """
            [{"user_id": "a", "email": "a@b.c", "name": "A", "created_on": "2020-01-31T12:00:00Z", \
            "google_user_id": 123, "picture": "https://example.com/a", "is_active": false},
            {"user_id": 7, "created_at": 86400}, {"user_id": "c", "created_on": "9999-01-01T00:00:00Z", "name": null}]
            """
        let result = try await run(text, into: store)
        #expect(result.tally.stored == 3 && result.reports.isEmpty)
        #expect(
            try await store.user("a")
                == User(
                    id: "a",
                    createdAt: Timestamp(secondsSince1970: 1_580_472_000),
                    email: "a@b.c",
                    name: "A",
                    picture: "https://example.com/a",
                    googleUserID: "123",
                    isActive: false
                )
        )
        #expect(try await store.user("7") == User(id: "7", createdAt: Timestamp(secondsSince1970: 86_400)))
        #expect(try await store.user("c")?.createdAt == time.now)
    }

    @Test("Bad lines are told by their number, without their content")
    func badLines() async throws {
        let store = InMemoryStore(timeSource: time)
        let text = """
            {"user_id": "a", "google_user_id": "1"}
            {"email": "secret@example.com"}
            {"user_id": "b", "is_active": "secret"}
            {"user_id": "c", "created_on": "secret"}
            secret
            {"user_id": "d", "google_user_id": "1"}
            {"user_id": "e", "email": ["secret"]}
            {"user_id": "f"}
            """
        let result = try await run(text, into: store)
        #expect(result.tally.stored == 2 && result.tally.bad == 6)
        // A line of the batch is judged when the batch is stored, after the others.
        #expect(
            Set(result.reports.compactMap { $0.split(separator: ":").first }) == [
                "line 2", "line 3", "line 4", "line 5", "line 6", "line 7",
            ]
        )
        #expect(!result.reports.joined().contains("secret"))
        #expect(try await store.user("d") == nil)
        #expect(try await store.user("f") != nil)
    }

    @Test("A stored user is kept; replaced, only what the line tells changes")
    func existing() async throws {
        let store = InMemoryStore(timeSource: time)
        _ = try await run(#"{"user_id": "a", "email": "a@b.c", "name": "A"}"#, into: store)
        let text = #"{"user_id": "a", "email": "new@b.c"}"#
        let kept = try await run(text, into: store)
        #expect(kept.tally.kept == 1 && kept.reports == ["line 1: user 'a' is stored already: kept"])
        #expect(try await store.user("a")?.email == "a@b.c")
        let replaced = try await run(text, into: store, replacing: true)
        #expect(replaced.tally.replaced == 1 && replaced.reports.isEmpty)
        #expect(try await store.user("a")?.email == "new@b.c")
        #expect(try await store.user("a")?.name == "A")
    }

    @Test("A user whom only a grant made known is filled in")
    func placeholder() async throws {
        let store = InMemoryStore(timeSource: time)
        let now = time.now
        try await store.transact { try $0.insert(User(id: "a", createdAt: now)) }
        let result = try await run(#"{"user_id": "a", "email": "a@b.c", "created_on": 86400}"#, into: store)
        #expect(result.tally.stored == 1)
        let expected = User(id: "a", createdAt: Timestamp(secondsSince1970: 86_400), email: "a@b.c")
        #expect(try await store.user("a") == expected)
    }

    @Test("A deleted user is not brought back", arguments: [false, true])
    func deleted(replacing: Bool) async throws {
        let store = InMemoryStore(timeSource: time)
        let now = time.now
        _ = try await store.transact { transaction in
            try transaction.insert(User(id: "a", createdAt: now))
            return try AccountDeletion.delete(user: "a", in: transaction, at: now, until: now + .seconds(60))
        }
        let result = try await run(#"{"user_id": "a", "email": "a@b.c"}"#, into: store, replacing: replacing)
        #expect(result.tally.bad == 1 && result.reports.first?.hasPrefix("line 1: user 'a' was deleted") == true)
        #expect(try await store.user("a")?.email == nil)
    }
}
