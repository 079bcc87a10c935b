import Base
import Crypto
import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Storage

@Suite("Calls to PostgreSQL", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresUseTests {
    private let id = GrantID(rawValue: 1)

    private func withStore(
        timeout: Duration = .seconds(60),
        _ body: (PostgresStore, Secret) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let setup = try await PostgresStore.open(url: url, timeout: .seconds(60))
            try await setup.add([try Sample.grant(1)])
            await setup.close()
            let store = try await PostgresServer.openWithTimeout(url, timeout: timeout)
            try await body(store, url)
            await store.close()
        }
    }

    private func postpone(_ store: any Store) async throws {
        try await store.change(id) { grant in
            grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
        }
    }

    /// Returns the sessions of a database whose last statement matches a condition.
    private func sessions(of url: Secret, where condition: String) async throws -> [Substring] {
        let name = try #require(url.reveal().firstMatch(of: /test_\w+/)?.0)
        return try await PostgresServer.run(
            "SELECT pid FROM pg_stat_activity WHERE datname = '\(name)' AND \(condition) ORDER BY pid",
            on: try #require(PostgresServer.url)
        ).split(separator: "\n")
    }

    @Test("A database that was moved refuses claims and transactions of all workers")
    func moved() async throws {
        try await withStore { store, url in
            let copier = try await PostgresStore.open(url: url)
            try await copier.markMoved(to: "the new place")
            for attempt in [
                { _ = try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30)) },
                { try await postpone(store) },
                { try await store.transact { try $0.setClientHealth([1], of: "c") } },
                { try await store.storeResults { _ = try $0.grant(id) } },
                { try await store.noticeAccepted(Sample.notice(Notice.Key(userID: "user 1", number: 1)), at: start) },
                { _ = try await store.claimNotices(owner: "w", for: .seconds(30)) },
            ] as [() async throws -> Void] {
                let error = await #expect(throws: StoreError.self) { try await attempt() }
                #expect(error?.code == .moved && error?.message.contains("was moved to the new place") == true)
            }
            #expect(try await store.clientHealth().isEmpty)
            #expect(try await store.grant(id)?.failures == 0)
            try await copier.markMoved(to: nil)
            try await postpone(store)
            #expect(try await store.grant(id)?.failures == 1)
            await copier.close()
        }
    }

    @Test("Tables that are dropped under a worker, or created again, are reported once and not used")
    func tablesLost() async throws {
        try await withStore { store, url in
            try await PostgresServer.run("DROP SCHEMA refresh_worker CASCADE", on: url.reveal())
            let missing = await #expect(throws: StoreError.self) { try await postpone(store) }
            #expect(missing?.code == .cannotOpen && missing?.message.contains("Restore a backup") == true)
            #expect(store.takeIncidents().map(\.kind) == [.tablesLost])
            let other = try await PostgresStore.open(url: url)
            for _ in 1...2 {
                let replaced = await #expect(throws: StoreError.self) { try await postpone(store) }
                #expect(replaced?.code == .cannotOpen && replaced?.message.contains("created again") == true)
            }
            await #expect(throws: StoreError.self) { try await store.checkUsable() }
            #expect(store.takeIncidents().isEmpty)
            await other.close()
        }
    }

    @Test(
        "Grants that something else removes are missed; a schedule that is written again is complete",
        arguments: [
            "DELETE FROM refresh_worker.grant_schedule WHERE grant_id = 1", "TRUNCATE refresh_worker.grant_schedule",
            "TRUNCATE refresh_worker.grants CASCADE",
            """
            DELETE FROM refresh_worker.grant_events; DELETE FROM refresh_worker.grant_schedule;
            DELETE FROM refresh_worker.grants
            """,
            "TRUNCATE refresh_worker.grant_counts",
            "UPDATE refresh_worker.grant_schedule SET due_at = NULL",
        ]
    )
    func rowsLost(statement: String) async throws {
        try await withStore { store, url in
            #expect(try await store.grantRowProblem() == nil)
            try await PostgresServer.run(statement, on: url.reveal())
            #expect(try await store.grantRowProblem()?.contains("something else changed its rows") == true)
            for repair in try Self.repairs { try await PostgresServer.run(repair, on: url.reveal()) }
            #expect(try await store.grantRowProblem() == nil)
            guard !statement.contains("refresh_worker.grants") else { return }
            #expect(try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30)).map(\.id) == [id])
        }
    }

    /// The statements that the runbook gives for lost rows.
    private static var repairs: [String] {
        get throws {
            let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../docs/runbook.md").standardized
            let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
            return try lines.filter { $0.hasPrefix("    psql ") }
                .map { String(try #require($0.firstMatch(of: /-c "(.*)"/)?.1)) }
        }
    }

    @Test("Calls that run out of time do not lose their connection")
    func expired() async throws {
        try await withStore(timeout: .seconds(2)) { store, url in
            try await poll { await failure(of: store) == nil }
            let writer = try await sessions(of: url, where: "state = 'idle'")
            try #require(!writer.isEmpty)
            let codes = try await holdingTurn(of: url) {
                await withTaskGroup(of: StoreError.Code?.self) { group in
                    for _ in 1...5 { group.addTask { await failure(of: store) } }
                    return await group.reduce(into: []) { $0.append($1) }
                }
            }
            #expect(codes == [.busy, .busy, .busy, .busy, .busy])
            let after = try await sessions(of: url, where: "true")
            #expect(after.filter(writer.contains) == writer)
        }
    }

    /// Returns the code of the error that a transaction ends with.
    private func failure(of store: PostgresStore) async -> StoreError.Code? {
        do {
            try await store.transact { _ = try $0.grant(id) }
            return nil
        } catch {
            return (error as? StoreError)?.code
        }
    }

    @Test("A result does not wait behind requests from outside")
    func results() async throws {
        try await withStore { store, url in
            let journal = Journal()
            try await withThrowingTaskGroup(of: Void.self) { group in
                try await holdingTurn(of: url) {
                    for _ in 1...20 {
                        group.addTask {
                            try await store.transact { transaction in
                                _ = try transaction.grant(id)
                                journal.note("request")
                            }
                        }
                    }
                    try await poll { try await !sessions(of: url, where: "wait_event_type = 'Lock'").isEmpty }
                    group.addTask {
                        try await store.storeResults { transaction in
                            _ = try transaction.grant(id)
                            journal.note("result")
                        }
                    }
                    try await poll { try await sessions(of: url, where: "wait_event_type = 'Lock'").count >= 2 }
                }
                try await group.waitForAll()
            }
            let place = try #require(journal.entries.firstIndex(of: "result"))
            #expect(place < 10, "the result was number \(place + 1) of 21")
        }
    }

    @Test("A query that waits for a locked table ends in time, and leaves no session behind")
    func lockedTable() async throws {
        try await withStore(timeout: .seconds(1)) { store, url in
            // Opens both connections for reads, one of which is taken at random, and the one for the check.
            var answers = 0
            while answers < 30 {
                if try await isAnswered({ _ = try await store.grant(id) }) { answers += 1 }
            }
            #expect(try await PostgresServer.check(store) == nil)
            let lock = "BEGIN; LOCK TABLE refresh_worker.grants; SELECT pg_sleep(60)"
            async let holder = try? PostgresServer.run(lock, on: url.reveal())
            try await poll { try await !sessions(of: url, where: "wait_event = 'PgSleep'").isEmpty }
            for _ in 1...3 {
                let error = await #expect(throws: StoreError.self) { try await store.grant(id) }
                #expect(error?.code == .busy)
            }
            let unusable = await #expect(throws: StoreError.self) { try await store.checkUsable() }
            #expect(unusable?.code == .busy)
            #expect(try await sessions(of: url, where: "wait_event_type = 'Lock'").isEmpty)
            let sleeper = try #require(try await sessions(of: url, where: "wait_event = 'PgSleep'").first)
            try await PostgresServer.run(
                "SELECT pg_terminate_backend(\(sleeper))",
                on: try #require(PostgresServer.url)
            )
            _ = await holder
            #expect(try await PostgresServer.check(store) == nil)
        }
    }

    @Test(
        "A notice that is stored while the one before it is accepted is due, whatever a role or a database is set to",
        arguments: ["read committed", "repeatable read", "serializable"]
    )
    func isolation(level: String) async throws {
        try await PostgresServer.withDatabase { url in
            let name = try #require(url.reveal().firstMatch(of: /test_\w+/)?.0)
            let setting = "ALTER DATABASE \(name) SET default_transaction_isolation = '\(level)'"
            try await PostgresServer.run(setting, on: url.reveal())
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60), keepsNotices: true)
            let other = try await PostgresStore.open(url: url, timeout: .seconds(60), keepsNotices: true)
            try await store.transact { try $0.notify(.userDeleted, ofUser: "u", at: start) }
            let first = try #require(try await store.dueNotices(at: start, atMost: 1).first)
            let release = DispatchSemaphore(value: 0)
            async let storing: Void = store.transact { transaction in
                _ = try transaction.grant(id)
                try transaction.notify(.userDeleted, ofUser: "u", at: start)
                release.wait()
            }
            try await poll { try await !sessions(of: url, where: "state = 'idle in transaction'").isEmpty }
            async let accepting: Void = other.noticeAccepted(first, at: start)
            try await poll { try await !sessions(of: url, where: "wait_event_type = 'Lock'").isEmpty }
            release.signal()
            try await storing
            try await accepting
            #expect(try await store.dueNotices(at: start, atMost: 10).map(\.key.number) == [first.key.number + 1])
            await store.close()
            await other.close()
        }
    }

    @Test("A clean-up does not remove a user who has signed up again after the clean-up of another worker")
    func signedUpAgain() async throws {
        try await withStore { store, url in
            let end = start + .seconds(86_400)
            _ = try await store.transact { try AccountDeletion.delete(user: "user 1", in: $0, at: start) }
            try await store.change(id) { grant in
                grant.finishRevocation()
                return []
            }
            let other = try await PostgresStore.open(url: url)
            let release = DispatchSemaphore(value: 0)
            let (held, holds) = AsyncStream.makeStream(of: Void.self)
            var tasks: [Task<Void, any Error>] = []
            try await holdingTurn(of: url) {
                tasks.append(Task { _ = try await store.removeExpired(at: end) })
                try await poll { try await !sessions(of: url, where: "wait_event_type = 'Lock'").isEmpty }
                // Whatever else the clean-up sends to be written waits behind this.
                let blocker = Task.immediate {
                    try await store.transact { _ in
                        holds.finish()
                        release.wait()
                    }
                }
                tasks.append(blocker)
            }
            for await _ in held {}
            _ = try await other.removeExpired(at: end)
            try await other.add([try Sample.grant(1)])
            release.signal()
            for task in tasks { try await task.value }
            #expect(try await store.grant(ofUser: "user 1")?.state == .active)
            await other.close()
        }
    }

    /// `false` if a call took longer than the store's timeout.
    private func isAnswered(_ call: () async throws -> Void) async throws -> Bool {
        do {
            try await call()
            return true
        } catch let error as StoreError where error.mayPass {
            return false
        }
    }

    /// Runs `body` while another worker holds the lock of the transactions.
    private func holdingTurn<StatementResult>(of url: Secret, _ body: () async throws -> StatementResult) async throws
        -> StatementResult
    {
        // The server ends a transaction that holds up others for as long as its store's timeout.
        let other = try await PostgresStore.open(url: url, timeout: .seconds(600))
        let release = DispatchSemaphore(value: 0)
        let (held, holds) = AsyncStream.makeStream(of: Void.self)
        let holding = Task {
            try await other.transact { transaction in
                _ = try transaction.grant(id)
                holds.finish()
                release.wait()
            }
        }
        for await _ in held {}
        let outcome: Result<StatementResult, any Error>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        release.signal()
        try await holding.value
        await other.close()
        return try outcome.get()
    }
}

/// The order of events.
private final class Journal: Sendable {
    private let list = Mutex<[String]>([])

    var entries: [String] { list.withLock(\.self) }

    func note(_ entry: String) {
        list.withLock { $0.append(entry) }
    }
}
