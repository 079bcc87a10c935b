import Crypto
import TestSupport
import Testing

@testable import Base
@testable import Storage

/// What a refresh writes is the load of the server, of its standbys and of its archive.
@Suite(
    "A refresh writes little to PostgreSQL",
    .enabled(if: PostgresServer.url != nil, PostgresServer.skipped),
    .timeLimit(.minutes(10))
)
struct PostgresWriteTests {
    /// The rows of a table that were written, as the server counts them.
    private struct Writes: Equatable {
        var inserted = 0
        var updated = 0
        /// The updates that have left all indexes of the table alone.
        var heapOnly = 0
        var deleted = 0
    }

    private let now = start + .seconds(5)

    @Test("It updates grants heap-only, and writes two more tables")
    func tables() async throws {
        try await PostgresServer.withDatabase { url in
            let due = try await addGrants(to: url)
            try await refresh(due, in: url, at: now)
            let expected = [
                "grants": Writes(updated: due.count, heapOnly: due.count),
                // The claim is heap-only. The new due time is not, because it is indexed.
                "grant_schedule": Writes(updated: 2 * due.count, heapOnly: due.count),
                "client_successes": Writes(inserted: 1),
            ]
            #expect(try await writes(to: url) == expected)

            // With an index on a changed column, no update is heap-only.
            let index = "CREATE INDEX ON refresh_worker.grants (access_expires_at)"
            try await PostgresServer.run("\(index); SELECT pg_stat_reset()", on: url.reveal())
            try await refresh(due, in: url, at: now + .seconds(3000))
            #expect(try await writes(to: url)["grants"] == Writes(updated: due.count))
        }
    }

    @Test("The columns that it changes are the last of the row, after the refresh token")
    func order() async throws {
        let names = PostgresGrantRow.grants.columns.map(\.name)
        let changed = PostgresGrantRow.refreshed.columns.map(\.name).filter { $0 != "id" }
        #expect(names.suffix(changed.count) == changed)
        #expect(!changed.contains("refresh_token"))
        #expect(Set(names) == Set(Grant.table.without("due_at").columns.map(\.name)))
    }

    @Test("Grants that are imported together are in the order of their due times, in both tables")
    func orderOfImport() async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            let additions = try Sample.grants(1...100).shuffled().map { NewGrant(grant: $0, events: []) }
            try await store.transact { try $0.insert(additions) }
            await store.close()
            for (table, key) in [("grants", "id"), ("grant_schedule", "grant_id")] {
                let query = "SELECT \(key) FROM refresh_worker.\(table) ORDER BY ctid"
                let ids = try await PostgresServer.run(query, on: url.reveal()).split(separator: "\n")
                #expect(ids == (1...100).map { "\($0)" }, "\(table)")
            }
        }
    }

    /// Adds grants, and returns the ids of some that are in different pages.
    private func addGrants(to url: Secret) async throws -> [GrantID] {
        let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
        try await store.add(try Sample.grants(1...1000))
        await store.close()
        try await waitForSessions(of: url)
        try await PostgresServer.run("SELECT pg_stat_reset()", on: url.reveal())
        return stride(from: 1, through: 1000, by: 100).map { GrantID(rawValue: $0) }
    }

    private func refresh(_ ids: [GrantID], in url: Secret, at now: Timestamp) async throws {
        let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
        let claimed = try await store.claim(ids, dueBy: nil, owner: "a", for: .seconds(30))
        let refreshes = try claimed.map { grant in
            var refreshed = grant
            refreshed.setLease(nil)
            let tokens = RefreshedTokens(accessToken: try Sample.accessToken("new", obtainedAt: now))
            _ = refreshed.refreshed(tokens, at: now) { _ in now + .seconds(3000) }
            return PlainRefresh(claimed: grant, refreshed: refreshed, secretFingerprint: .max)
        }
        #expect(try await store.storePlain(refreshes, at: now).count == ids.count)
        await store.close()
        try await waitForSessions(of: url)
    }

    /// A session reports its last writes when it ends.
    private func waitForSessions(of url: Secret) async throws {
        let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        let query = "SELECT count(*) \(others) AND backend_type = 'client backend'"
        try await poll { try await PostgresServer.run(query, on: url.reveal()) == "0\n" }
    }

    private func writes(to url: Secret) async throws -> [String: Writes] {
        let query = """
            SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del FROM pg_stat_user_tables
            WHERE n_tup_ins + n_tup_upd + n_tup_del > 0
            """
        let lines = try await PostgresServer.run(query, on: url.reveal()).split(separator: "\n")
        return try lines.reduce(into: [:]) { found, line in
            let fields = line.split(separator: "|")
            let counts = try fields.dropFirst().map { try #require(Int($0)) }
            found[String(fields[0])] = Writes(
                inserted: counts[0],
                updated: counts[1],
                heapOnly: counts[2],
                deleted: counts[3]
            )
        }
    }
}
