import Crypto
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite(
    "A scan on PostgreSQL is fast and complete while a transaction is old",
    .enabled(if: PostgresServer.url != nil),
    .timeLimit(.minutes(10))
)
struct PostgresDueMarkTests {
    private static let client = "client 1"

    /// Opens a store whose scans begin at a mark even if they are fast.
    private static func withMarkedStore(
        _ body: @escaping @Sendable (PostgresStore, Timestamp) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore(
                at: try DatabaseAddress(url: url),
                clock: DatabaseClock(local: SystemTime()),
                slowScan: .zero
            )
            try await body(store, store.clock.now)
            await store.close()
        }
    }

    private static func due(
        _ store: PostgresStore,
        by limit: Timestamp,
        after cursor: DueEntry? = nil,
        atMost: Int = 10
    )
        async throws -> [Int64]
    {
        try await store.due(ofClient: client, by: limit, after: cursor, atMost: atMost).map(\.id.rawValue)
    }

    @Test("Grants before the mark stay in each page, also while nothing is stored")
    func waiting() async throws {
        try await Self.withMarkedStore { store, now in
            let entries = try ([1, 3, 5, 7] as [Int64]).map { number in
                try Sample.grant(number, dueAt: now - .seconds(100 - 10 * number))
            }
            try await store.add(entries)
            for _ in 0..<5 {
                let limit = store.clock.now
                #expect(try await Self.due(store, by: limit) == [1, 3, 5, 7])
                let page = try await store.due(ofClient: Self.client, by: limit, after: nil, atMost: 2)
                #expect(page.map(\.id.rawValue) == [1, 3])
                #expect(try await Self.due(store, by: limit, after: page.last, atMost: 2) == [5, 7])
            }
            #expect(store.dueMarks.withLock { $0[Self.client] } != nil)
        }
    }

    @Test("A due time that is written before the mark is found by the next full look")
    func writtenBeforeMark() async throws {
        try await Self.withMarkedStore { store, now in
            try await store.add([try Sample.grant(1, dueAt: now), try Sample.grant(3, dueAt: now + .seconds(3_000))])
            #expect(try await Self.due(store, by: now) == [1])
            #expect(try await Self.due(store, by: now) == [1])
            // An import of a grant that is overdue, and the due time of a clock that was behind.
            try await store.add([try Sample.grant(5, dueAt: now - .seconds(7_200))])
            try await store.change(GrantID(rawValue: 3)) {
                $0.retry(reason: GrantReason(rawValue: "network"), dueAt: now - .seconds(3_600), at: now)
            }
            try await poll { try await Self.due(store, by: now) == [5, 3, 1] }
            // A grant whose due time moves on leaves the page at once.
            try await store.change(GrantID(rawValue: 5)) {
                $0.retry(reason: GrantReason(rawValue: "network"), dueAt: now + .seconds(900), at: now)
            }
            #expect(try await Self.due(store, by: now) == [3, 1])
        }
    }

    @Test("A clock that is set back ends the mark, so that nothing has to wait for a full look")
    func clockSetBack() async throws {
        try await Self.withMarkedStore { store, now in
            try await store.add([try Sample.grant(1, dueAt: now - .seconds(40))])
            #expect(try await Self.due(store, by: now) == [1])
            let earlier = now - .seconds(3_600)
            try await store.add([try Sample.grant(3, dueAt: earlier)])
            #expect(try await Self.due(store, by: earlier) == [3])
        }
    }

    @Test("A grant before the mark that is claimed and given back, or refreshed by a caller, is neither lost nor kept")
    func claimedBeforeMark() async throws {
        try await Self.withMarkedStore { store, now in
            try await store.add(
                try ([1, 3, 5] as [Int64]).map { try Sample.grant($0, dueAt: now - .seconds(100 - $0)) }
            )
            for _ in 0..<2 { #expect(try await Self.due(store, by: now) == [1, 3, 5]) }
            let claimed = try await store.claim(
                [1, 3].map { GrantID(rawValue: $0) },
                dueBy: nil,
                owner: "w",
                for: .seconds(30)
            )
            #expect(try await Self.due(store, by: now) == [1, 3, 5])
            let claims = claimed.compactMap { grant in grant.lease.map { (grant.id, $0.claim) } }
            try await store.release(Dictionary(uniqueKeysWithValues: claims))
            #expect(try await Self.due(store, by: now) == [1, 3, 5])

            // A caller has it refreshed, which fails, and is tried again before the mark is passed.
            try await store.change(GrantID(rawValue: 3)) {
                $0.retry(reason: GrantReason(rawValue: "network"), dueAt: now + .seconds(2), at: now)
            }
            #expect(try await Self.due(store, by: now) == [1, 5])
            #expect(try await Self.due(store, by: now + .seconds(5)) == [1, 5, 3])
            #expect(store.dueMarks.withLock { $0[Self.client] } != nil)
        }
    }

    /// Opens a store whose scans and looks the server ends at once.
    private static func withStoreOfNoTime(
        _ body: @escaping @Sendable (PostgresStore, Secret, Timestamp) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore(
                at: try DatabaseAddress(url: url),
                clock: DatabaseClock(local: SystemTime()),
                scanLimit: .milliseconds(100)
            )
            try await body(store, url, store.clock.now)
            await store.close()
        }
    }

    @Test("While a table is locked scans fail with advice, and a look that failed fails no later scan")
    func failedLook() async throws {
        try await Self.withStoreOfNoTime { store, url, now in
            try await store.add([try Sample.grant(1, dueAt: now - .seconds(100))])
            let deadline = CallDeadline(in: .seconds(600))
            let other = try PostgresConnection.open(try DatabaseAddress(url: url), until: deadline)
            try other.execute("BEGIN; LOCK TABLE refresh_worker.grant_schedule", named: "lock", until: deadline)
            let error = await #expect(throws: StoreError.self) { try await Self.due(store, by: now) }
            #expect(error?.code == .busy && error?.message.contains("an old transaction keeps dead rows") == true)
            let failed = await #expect(throws: StoreError.self) {
                try await store.waitForFullLook(ofClient: Self.client)
            }
            #expect(failed?.code == .busy)
            #expect(store.takeIncidents().map(\.kind) == [.lookFailed])
            try other.execute("COMMIT", named: "unlock", until: deadline)

            // The grant is before the mark: the next look finds it.
            try await poll { try await Self.due(store, by: now) == [1] }
            #expect(store.takeIncidents().isEmpty)
        }
    }

    @Test("With two million dead entries and an open snapshot a scan reads beside them after the first one")
    func deadEntries() async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(120))
            let now = store.clock.now
            try await store.add([try Sample.grant(1, dueAt: now - .seconds(5))])
            let address = try DatabaseAddress(url: url)
            let other = PostgresConnectionQueue(
                to: Connector(to: address, newestServer: nil),
                label: "postgres.forgotten",
                timeout: .seconds(240),
                random: SystemRandom()
            )
            let writer = PostgresConnectionQueue(
                to: Connector(to: address, newestServer: nil),
                label: "postgres.dead",
                timeout: .seconds(240),
                random: SystemRandom()
            )
            try await other.run { connection, deadline throws(StoreError) in
                try connection.execute(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1",
                    named: "begin",
                    until: deadline
                )
            }
            try await writer.run { connection, deadline throws(StoreError) in
                // Without the check of the foreign key: the rows have no grants.
                let rows = """
                    SET session_replication_role = replica;
                    INSERT INTO refresh_worker.grant_schedule (grant_id, client_id, due_at)
                    SELECT 1000 + n, '\(Self.client)', \((now - .seconds(3_000)).milliseconds) + n * 29 / 20
                    FROM generate_series(1, 2000000) AS n
                    """
                try connection.execute(rows, named: "insert", until: deadline)
                try connection.execute(
                    "DELETE FROM refresh_worker.grant_schedule WHERE grant_id > 1000",
                    named: "delete",
                    until: deadline
                )
            }
            // As autovacuum does it: the table now seems to be nearly empty.
            try await writer.run { connection, deadline throws(StoreError) in
                try connection.execute("ANALYZE refresh_worker.grant_schedule", named: "analyze", until: deadline)
            }
            let time = SystemTime()
            var spans: [Duration] = []
            // On an idle machine the first takes half a second, and the others a few milliseconds. On a busy one some of
            // the others can be slow too, but not all.
            func hasFastScan() -> Bool { spans.contains { $0 * 4 < spans[0] } }
            while spans.count < 10 || spans.count < 100 && !hasFastScan() {
                let start = time.sinceBoot
                #expect(try await store.clientsWithDueTimes() == [Self.client])
                #expect(try await Self.due(store, by: now) == [1])
                spans.append(time.sinceBoot - start)
            }
            print("a scan over two million dead entries: first \(spans[0]), then \(spans.dropFirst())")
            #expect(spans[0] > DueMark.slowScan, "the dead entries slow a scan from the beginning down")
            #expect(hasFastScan())
            try await store.add([try Sample.grant(3, dueAt: now - .seconds(2_900))])
            try await poll { try await Self.due(store, by: now) == [3, 1] }

            // A worker that starts now gives its first scan up, and a look in parts finds what was due before.
            let started = try await PostgresStore(
                at: address,
                clock: DatabaseClock(local: SystemTime()),
                scanLimit: .milliseconds(50)
            )
            #expect(try await Self.due(started, by: now) == [1])
            try await started.waitForFullLook(ofClient: Self.client)
            #expect(try await Self.due(started, by: now) == [3, 1])
            await started.close()
            await other.close()
            await writer.close()
            await store.close()
        }
    }
}
