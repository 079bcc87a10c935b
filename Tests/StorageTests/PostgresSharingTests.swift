import Crypto
import Dispatch
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Workers share a PostgreSQL database", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresSharingTests {
    private func withStores(
        timeout: Duration = .seconds(60),
        _ body: (PostgresStore, PostgresStore, Secret) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let first = try await PostgresServer.openWithTimeout(url, timeout: timeout)
            let second = try await PostgresStore.open(url: url, timeout: .seconds(60))
            try await body(first, second, url)
            await first.close()
            await second.close()
        }
    }

    @Test("Of two workers that claim at once, each grant goes to one")
    func claims() async throws {
        try await withStores { first, second, _ in
            try await first.add(try Sample.grants(1...300))
            let ids = (1...300).map { GrantID(rawValue: $0) }
            let won = try await withThrowingTaskGroup(of: [GrantID].self) { group in
                for store in [first, second] {
                    for start in stride(from: 0, to: 300, by: 50) {
                        group.addTask {
                            let part = Array(ids[start..<start + 50])
                            return try await store.claim(part, dueBy: nil, owner: "w", for: .seconds(30)).map(\.id)
                        }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(won.sorted() == ids)
        }
    }

    @Test("Leases use the database's clock")
    func leaseClock() async throws {
        try await withStores { first, second, _ in
            try await first.add([try Sample.grant(1)])
            let id = GrantID(rawValue: 1)
            let claimed = try await first.claim([id], dueBy: nil, owner: "a", for: .seconds(30))
            let remaining = try #require(claimed.first?.lease).remaining(at: try await second.leaseTime())
            #expect(remaining > .seconds(15) && remaining < .seconds(45))
        }
    }

    /// Calls `body` with two workers on one database; the second reads a clock that was set back after the first has
    /// read it.
    private func withClockSetBack(
        by step: Duration,
        _ body: (_ before: PostgresStore, _ after: PostgresStore) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let instant = BootInstant(milliseconds: 10_000_000)
            let before = try await PostgresStore.open(
                url: url,
                keepsNotices: true,
                leaseClock: ManualTime(sinceBoot: instant)
            )
            let after = try await PostgresStore.open(
                url: url,
                keepsNotices: true,
                leaseClock: ManualTime(sinceBoot: instant - step)
            )
            try await body(before, after)
            await before.close()
            await after.close()
        }
    }

    @Test(
        "A lease that ends later than possible is free: the database's clock was set back",
        arguments: [(Duration.seconds(20), false), (.seconds(40), true), (.seconds(3600), true)]
    )
    func leaseOfTheFuture(step: Duration, isFree: Bool) async throws {
        try await withClockSetBack(by: step) { before, after in
            let id = GrantID(rawValue: 1)
            try await before.add([try Sample.grant(1)])
            #expect(try await before.claim([id], dueBy: nil, owner: "dead", for: .seconds(30)).count == 1)
            let claimed = try await after.claim([id], dueBy: nil, owner: "b", for: .seconds(30))
            #expect(claimed.count == (isFree ? 1 : 0))
            let again = try await after.claim([id], dueBy: nil, owner: "c", for: .seconds(30))
            #expect(again.isEmpty)
            #expect(try await before.claimNotices(owner: "dead", for: .seconds(30)))
            #expect(try await after.claimNotices(owner: "b", for: .seconds(30)) == isFree)
        }
    }

    @Test("A worker that renews in time keeps its lease when the database's clock is set back")
    func renewalAfterStep() async throws {
        try await withClockSetBack(by: .seconds(3600)) { before, after in
            let id = GrantID(rawValue: 1)
            try await before.add([try Sample.grant(1)])
            let claimed = try await before.claim([id], dueBy: nil, owner: "a", for: .seconds(30))
            let claim = try #require(claimed.first?.lease?.claim)
            #expect(try await after.renew([id: claim], for: .seconds(30)) == [id])
            #expect(try await after.claim([id], dueBy: nil, owner: "b", for: .seconds(30)).isEmpty)
        }
    }

    @Test(
        "A worker whose report is in the future counts as dead until it reports again",
        arguments: [(Duration.seconds(20), true), (.seconds(40), false)]
    )
    func reportOfTheFuture(step: Duration, lives: Bool) async throws {
        try await withClockSetBack(by: step) { before, after in
            let key = try #require(KeyID(Sample.key))
            let reports = ["a", "b"].map { WorkerReport(id: $0, keyIDs: [key], sealingKeyID: key) }
            #expect(try await before.report(reports[0]) == [reports[0]])
            #expect(try await after.liveWorkers() == (lives ? [reports[0]] : []))
            #expect(try await after.report(reports[1]) == (lives ? reports : [reports[1]]))
            #expect(try await after.report(reports[0]) == reports)
        }
    }

    @Test("A grant that has just begun to wait for confirmation is not expedited")
    func expediteWhileChanging() async throws {
        try await withStores { store, _, url in
            try await store.add([try Sample.grant(2)])
            try await store.change(GrantID(rawValue: 2)) {
                $0.retry(reason: GrantReason(rawValue: "http_503"), dueAt: start + .seconds(500), at: start)
            }
            // Reading the grants waits, after the snapshot was taken, until the other session has changed them.
            let held =
                "SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database "
                + "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objid ="
            try await PostgresServer.run(
                """
                CREATE FUNCTION refresh_worker.pause() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN
                    PERFORM pg_advisory_xact_lock(77001);
                    WHILE NOT EXISTS (\(held) 77002) LOOP END LOOP;
                    RETURN true;
                END $$;
                ALTER TABLE refresh_worker.grants RENAME TO held_grants;
                CREATE VIEW refresh_worker.grants AS SELECT * FROM refresh_worker.held_grants WHERE refresh_worker.pause();
                """,
                on: url.reveal()
            )
            let change: [String] = [
                "DO $$ BEGIN WHILE NOT EXISTS (\(held) 77001) LOOP END LOOP; END $$",
                """
                UPDATE refresh_worker.held_grants SET reason = 'invalid_grant_unconfirmed';
                UPDATE refresh_worker.grant_schedule SET due_at = due_at + 1000;
                """,
                "SELECT pg_advisory_lock(77002)",
                "DO $$ BEGIN WHILE EXISTS (\(held) 77001) LOOP END LOOP; END $$",
            ]
            async let changed = ChildProcess.run(
                ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
                    + change.map { "--command=\($0)" } + [url.reveal()]
            )
            _ = try await store.expediteRetries(ofClient: "client 0", dueBy: start, after: nil, atMost: 10)
            _ = try await changed
            let due = try await PostgresServer.run("SELECT due_at FROM refresh_worker.grant_schedule", on: url.reveal())
            #expect(due == "\((start + .seconds(501)).milliseconds)\n")
        }
    }

    @Test("Transactions run one at a time: no update is lost")
    func serialTransactions() async throws {
        try await withStores { first, second, _ in
            try await first.add([try Sample.grant(1)])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<40 {
                    let store = index.isMultiple(of: 2) ? first : second
                    group.addTask {
                        try await store.change(GrantID(rawValue: 1)) { grant in
                            grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await first.grant(GrantID(rawValue: 1))?.failures == 40)
        }
    }

    @Test("A worker that pauses within a transaction does not block others for long, and writes nothing")
    func stopped() async throws {
        try await withStores(timeout: .seconds(5)) { stopped, other, _ in
            try await other.add([try Sample.grant(1)])
            let hasBegun = AsyncStream.makeStream(of: Void.self)
            let mayGoOn = DispatchSemaphore(value: 0)
            let isFirstRun = PostgresServer.Once()
            async let outcome: Void = stopped.transact { transaction in
                // After the end of its session it runs again, if its time is not over by then.
                guard isFirstRun.isFirst() else { return }
                var grant = try #require(try transaction.grant(GrantID(rawValue: 1)))
                hasBegun.continuation.yield()
                mayGoOn.wait()
                mayGoOn.signal()
                _ = grant.disconnect(reason: .invalidGrant, at: start)
                try transaction.update(grant)
            }
            var begun = hasBegun.stream.makeAsyncIterator()
            await begun.next()
            try await other.change(GrantID(rawValue: 1)) { grant in
                grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
            }
            mayGoOn.signal()
            do {
                try await outcome
            } catch let error as StoreError {
                #expect(error.mayPass)
            }
            #expect(try await other.grant(GrantID(rawValue: 1))?.state == .retrying)
        }
    }

    @Test("A worker is notified of grants that another one connected, and of no other change", .timeLimit(.minutes(10)))
    func notifications() async throws {
        try await withStores { first, second, url in
            var changes = first.changes().makeAsyncIterator()
            // Signalled once it listens, for notifications that may have been missed.
            await changes.next()
            try await second.add([try Sample.grant(1)])
            let (grant, events) = Grant.connected(
                id: GrantID(rawValue: 2),
                userID: "user 2",
                incoming: IncomingTokens(clientID: "client"),
                dueAt: nil,
                at: start
            )
            try await second.transact { transaction in
                try transaction.insert(grant)
                for event in events { try transaction.record(event) }
            }
            await changes.next()
            #expect(try await first.grant(grant.id) != nil)
            // A lost connection may have lost a notification, so this is signalled too.
            try await PostgresServer.endSessions(of: url)
            await changes.next()
        }
    }
}
