import Crypto
import Testing

@testable import Base
@testable import Storage

@Suite("An old transaction on PostgreSQL is named", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresOldestTransactionTests {
    private let deadline = CallDeadline(in: .seconds(600))

    private func withSession(
        _ statements: String,
        _ body: (PostgresStore, _ other: PostgresConnection, Secret) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            let other = try PostgresConnection.open(try DatabaseAddress(url: url), until: deadline)
            try other.execute("SET application_name = 'psql of Dora'; \(statements)", named: "open", until: deadline)
            try await body(store, other, url)
            await store.close()
        }
    }

    @Test("A session with a snapshot is named by its process, user and application")
    func session() async throws {
        try await withSession("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1") { store, other, _ in
            let oldest = try #require(try await store.oldestTransaction())
            let holder = "session \(other.serverProcess) of postgres (psql of Dora, idle in transaction)"
            #expect(oldest.holder == holder)
            #expect(try #require(oldest.age) < .seconds(600) && !oldest.isForgotten)
            try other.execute("COMMIT", named: "end", until: deadline)
            #expect(try await store.oldestTransaction()?.holder != holder)
        }
    }

    @Test("An open transaction without a snapshot keeps no row, and is not named")
    func idle() async throws {
        try await withSession("BEGIN; SELECT 1") { store, _, _ in
            let holder = try await store.oldestTransaction()?.holder ?? "none"
            #expect(!holder.contains("Dora"))
        }
    }

    @Test("A role sees another one's transaction once it can read all statistics")
    func rights() async throws {
        try await withSession("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1") { store, _, url in
            let role = "plain_\(UInt32.random(in: 0...UInt32.max))"
            try await PostgresServer.run(
                """
                CREATE ROLE \(role) LOGIN;
                GRANT USAGE ON SCHEMA refresh_worker TO \(role);
                GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO \(role)
                """,
                on: url.reveal()
            )
            let plainURL = Secret(url.reveal().replacing("postgres@", with: "\(role)@"))
            let address = try DatabaseAddress(url: plainURL)
            let plain = try await PostgresStore.open(url: plainURL, timeout: .seconds(60))
            #expect(try await plain.oldestTransaction()?.holder.contains("Dora") != true)
            #expect(try await !ServerFacts.read(address, time: SystemTime()).seesOtherSessions)
            try await PostgresServer.run("GRANT pg_read_all_stats TO \(role)", on: url.reveal())
            #expect(try await plain.oldestTransaction()?.holder.contains("Dora") == true)
            #expect(try await ServerFacts.read(address, time: SystemTime()).seesOtherSessions)
            await plain.close()
            try await PostgresServer.run("DROP OWNED BY \(role); DROP ROLE \(role)", on: url.reveal())
        }
    }
}
