import Base
import Crypto
import Testing

@testable import Storage

@Suite(
    "Sequences on PostgreSQL that a logical upgrade left behind are moved",
    .enabled(if: PostgresServer.url != nil, PostgresServer.skipped)
)
struct PostgresSequenceTests {
    private let id = GrantID(rawValue: 1)

    /// Calls `body` with a store that has two events and two notices.
    ///
    /// With a single one the failed insert itself would move the sequence past it.
    private func withEvents(_ body: (PostgresStore, Secret) async throws -> Void) async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await open(url)
            try await store.add([try Sample.grant(1)])
            for _ in 0..<2 { try await disconnect(store) }
            try await body(store, url)
            await store.close()
        }
    }

    private func open(_ url: Secret) async throws -> PostgresStore {
        try await PostgresStore.open(url: url, timeout: .seconds(60), keepsNotices: true)
    }

    /// Stores an event and the notice about it.
    private func disconnect(_ store: PostgresStore) async throws {
        try await store.transact { transaction in
            try transaction.record(
                GrantEvent(
                    grant: id,
                    at: start,
                    kind: .state,
                    from: .active,
                    to: .disconnected,
                    reason: GrantReason(rawValue: "invalid_grant"),
                    generation: 1
                )
            )
            try transaction.notify(.userDeleted, ofUser: "u", at: start)
        }
    }

    private func reset(_ table: String, on url: Secret) async throws {
        let statement = "SELECT setval(pg_get_serial_sequence('refresh_worker.\(table)', 'seq'), 1, false)"
        try await PostgresServer.run(statement, on: url.reveal())
    }

    private func count(_ table: String, on url: Secret) async throws -> Int? {
        let answer = try await PostgresServer.run("SELECT count(*) FROM refresh_worker.\(table)", on: url.reveal())
        return Int(answer.split(separator: "\n").joined())
    }

    @Test(
        "A transaction that meets a number twice is stored, and the log says so once",
        arguments: ["grant_events", "notices"]
    )
    func duplicate(table: String) async throws {
        try await withEvents { store, url in
            let before = try #require(try await count(table, on: url))
            #expect(before >= 2 && store.takeIncidents().isEmpty)
            try await reset(table, on: url)
            try await disconnect(store)
            #expect(try await count(table, on: url) ?? 0 > before)
            let incidents = store.takeIncidents()
            #expect(incidents.map(\.kind) == [.sequencesMoved])
            #expect(incidents.first?.text.contains("\(table) in ") == true)
            try await disconnect(store)
            #expect(store.takeIncidents().isEmpty)
        }
    }

    @Test("A worker that starts moves them, and leaves those that are ahead", arguments: ["grant_events", "notices"])
    func atStart(table: String) async throws {
        try await withEvents { store, url in
            try await reset(table, on: url)
            let started = try await open(url)
            #expect(started.takeIncidents().map(\.kind) == [.sequencesMoved])
            try await disconnect(started)
            try await disconnect(store)
            #expect(store.takeIncidents().isEmpty)
            let again = try await open(url)
            #expect(again.takeIncidents().isEmpty)
            await again.close()
            await started.close()
        }
    }

    @Test("A role that cannot move them is told what the owner of the tables must run")
    func missingRight() async throws {
        try await withEvents { store, url in
            let role = "plain_\(UInt32.random(in: 0...UInt32.max))"
            try await PostgresServer.run(
                """
                CREATE ROLE \(role) LOGIN;
                GRANT USAGE, CREATE ON SCHEMA refresh_worker TO \(role);
                GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO \(role);
                """,
                on: url.reveal()
            )
            try await reset("grant_events", on: url)
            let plain = try await open(Secret(url.reveal().replacing("postgres@", with: "\(role)@")))
            let error = await #expect(throws: StoreError.self) { try await disconnect(plain) }
            #expect(error?.mayPass == true && plain.takeIncidents().isEmpty)
            let advice = try #require(error?.message.firstMatch(of: /run: (.*)$/)?.1)
            try await PostgresServer.run(String(advice), on: url.reveal())
            try await disconnect(plain)
            await plain.close()
            try await PostgresServer.run("DROP OWNED BY \(role); DROP ROLE \(role)", on: url.reveal())
        }
    }
}
