import Crypto
import Foundation
import TestSupport
import Testing

@testable import Storage

@Suite("Several PostgreSQL servers", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresServersTests {
    private let id = GrantID(rawValue: 1)

    /// Two servers, and a link that acts as a host name that points to one of them.
    private struct Pair {
        let folder: TemporaryFolder
        var primary: String { folder.path("primary") }
        var standby: String { folder.path("standby") }
        var link: String { folder.path("link") }
        /// The address whose host is the link.
        var linked: Secret { Secret("postgres://postgres@/postgres?host=\(link)") }

        func point(to server: String) throws {
            let new = folder.path("new-link")
            try FileManager.default.createSymbolicLink(atPath: new, withDestinationPath: server)
            #expect(rename(new, link) == 0)
        }

        func url(_ server: String) -> String { "postgres://postgres@/postgres?host=\(server)" }

        /// Ends the sessions of all stores at a server.
        func cut(_ server: String) async throws {
            try await PostgresServer.run(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'refresh-worker'",
                on: url(server)
            )
        }

        /// Creates a standby with all data, and promotes it; the primary continues and accepts writes.
        func failOver() async throws {
            try await PostgresServer.control("standby", standby, primary)
            try await PostgresServer.control("promote", standby)
        }
    }

    private func withPair(_ body: (Pair) async throws -> Void) async throws {
        try await TemporaryFolder.with(onDisk: true) { folder in
            try await ChildProcess.run(["chmod", "755", folder.root])
            let pair = Pair(folder: folder)
            try await PostgresServer.control("start", pair.primary)
            let outcome: Result<Void, any Error>
            do {
                outcome = .success(try await body(pair))
            } catch {
                outcome = .failure(error)
            }
            for server in [pair.primary, pair.standby] where FileManager.default.fileExists(atPath: server) {
                try await PostgresServer.control("stop", server)
            }
            try outcome.get()
        }
    }

    private func postpone(_ store: any Store) async throws {
        try await store.change(id) { grant in
            grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
        }
    }

    private func report(to store: any Store) async throws {
        let key = try #require(KeyID(Sample.key))
        _ = try await store.report(WorkerReport(id: "w", keyIDs: [key], sealingKeyID: key))
    }

    @Test("A former primary that accepts writes again is refused, and the new one is used when it responds")
    func formerPrimary() async throws {
        try await withPair { pair in
            try pair.point(to: pair.primary)
            let store = try await PostgresStore.open(url: pair.linked, timeout: .seconds(8))
            try await store.add([try Sample.grant(1)])
            try await pair.failOver()
            try pair.point(to: pair.standby)
            try await pair.cut(pair.primary)
            try await postpone(store)
            #expect(store.takeIncidents().map(\.kind) == [.failedOver])
            #expect(store.takeIncidents().isEmpty)

            try pair.point(to: pair.primary)
            try await pair.cut(pair.standby)
            let written = await #expect(throws: StoreError.self) { try await postpone(store) }
            #expect(written?.code == .unreachable && written?.message.contains("is on timeline 1") == true)
            let claimed = await #expect(throws: StoreError.self) {
                try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30))
            }
            #expect(claimed?.message.contains("is on timeline 1") == true)
            await #expect(throws: StoreError.self) { try await store.grant(id) }

            try pair.point(to: pair.standby)
            try await postpone(store)
            #expect(try await store.grant(id)?.failures == 2)
            await store.close()
        }
    }

    @Test("A connection that outlives a fail-over is not used any more")
    func survivingConnection() async throws {
        try await withPair { pair in
            try pair.point(to: pair.primary)
            let store = try await PostgresStore.open(url: pair.linked, timeout: .seconds(8))
            try await store.add([try Sample.grant(1)])
            try await postpone(store)
            try await pair.failOver()
            try pair.point(to: pair.standby)
            // The claim's connection is new and leads to the new primary; the transactions' connection is still open.
            _ = try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30))
            try await postpone(store)
            #expect(try await store.grant(id)?.failures == 2)
            let former = try await PostgresServer.run(
                "SELECT attempts FROM refresh_worker.grants",
                on: pair.url(pair.primary)
            )
            #expect(former.split(separator: "\n") == ["1"])
            await store.close()
        }
    }

    @Test("Of several writable hosts the newest is used from the start")
    func severalHosts() async throws {
        try await withPair { pair in
            try pair.point(to: pair.primary)
            await (try PostgresStore.open(url: pair.linked)).close()
            try await pair.failOver()
            let both = Secret("postgres://postgres@/postgres?host=\(pair.primary),\(pair.standby)")
            let store = try await PostgresStore.open(url: both)
            try await store.add([try Sample.grant(1)])
            await store.close()
            let count = "SELECT count(*) FROM refresh_worker.grants"
            #expect(try await PostgresServer.run(count, on: pair.url(pair.primary)).first == "0")
            #expect(try await PostgresServer.run(count, on: pair.url(pair.standby)).first == "1")
        }
    }

    @Test("A fail-over while no worker ran is reported by the next one, once")
    func recorded() async throws {
        try await withPair { pair in
            try pair.point(to: pair.primary)
            let before = try await PostgresStore.open(url: pair.linked)
            try await report(to: before)
            await before.close()
            try await pair.failOver()
            try pair.point(to: pair.standby)
            let after = try await PostgresStore.open(url: pair.linked)
            #expect(after.takeIncidents().map(\.kind) == [.failedOver])
            try await report(to: after)
            await after.close()
            let later = try await PostgresStore.open(url: pair.linked)
            #expect(later.takeIncidents().isEmpty)
            await later.close()
        }
    }

    @Test("A commit whose wait for the standby was cancelled is not reported as done")
    func cancelledWait() async throws {
        try await withPair { pair in
            let url = pair.url(pair.primary)
            // The server tells of the cancellation in a warning, which a role or a database can be set to leave out.
            try await PostgresServer.run("ALTER SYSTEM SET client_min_messages = 'error'", on: url)
            let store = try await PostgresStore.open(url: Secret(url))
            try await store.add([try Sample.grant(1)])
            let require = { (names: String) in
                try await PostgresServer.run("ALTER SYSTEM SET synchronous_standby_names = '\(names)'", on: url)
                try await PostgresServer.run("SELECT pg_reload_conf()", on: url)
                try await poll(until: {
                    try await PostgresServer.run("SHOW synchronous_standby_names", on: url).hasPrefix(names + "\n")
                })
            }
            try await require("away")
            let writing = Task { try await postpone(store) }
            try await poll(until: {
                try await PostgresServer.run(
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                    on: url
                ).contains("t")
            })
            let unknown = await #expect(throws: StoreError.self) { try await writing.value }
            #expect(unknown?.code == .unreachable && unknown?.message.contains("standby") == true)
            try await require("")
            try await postpone(store)
            #expect(try await store.grant(id)?.failures == 2)
            await store.close()
        }
    }

    @Test("Another database cluster is refused by a running worker, and reported by a starting one")
    func otherCluster() async throws {
        try await withPair { pair in
            try pair.point(to: pair.primary)
            let store = try await PostgresStore.open(url: pair.linked, timeout: .seconds(10))
            try await store.add([try Sample.grant(1)])
            try await report(to: store)
            let dump = try await ChildProcess.run(["pg_dump", "--schema=refresh_worker", pair.url(pair.primary)])
            try await PostgresServer.control("start", pair.standby)
            let file = pair.folder.path("dump.sql")
            try dump.write(toFile: file, atomically: true, encoding: .utf8)
            try await ChildProcess.run(["psql", "--quiet", "--file=\(file)", pair.url(pair.standby)])
            try pair.point(to: pair.standby)
            try await pair.cut(pair.primary)
            let refused = await #expect(throws: StoreError.self) { try await postpone(store) }
            #expect(refused?.code == .unreachable && refused?.message.contains("another database cluster") == true)
            await store.close()
            let restarted = try await PostgresStore.open(url: pair.linked)
            #expect(restarted.takeIncidents().map(\.kind) == [.databaseReplaced])
            #expect(try await restarted.grant(id)?.failures == 0)
            await restarted.close()
        }
    }
}

@Suite("A copy of a database within its server", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresCopyTests {
    @Test("is reported until a worker has used it, and the original is not")
    func copy() async throws {
        let key = try #require(KeyID(Sample.key))
        let report = WorkerReport(id: "w", keyIDs: [key], sealingKeyID: key)
        try await PostgresServer.withDatabase { url in
            let first = try await PostgresStore.open(url: url)
            #expect(first.pendingIncidents().isEmpty)
            _ = try await first.report(report)
            await first.close()

            let original = try #require(url.reveal().firstMatch(of: /test_\w+/)?.0)
            let copy = "\(original)_copy"
            let admin = try #require(PostgresServer.url)
            try await PostgresServer.endSessions(of: url)
            try await PostgresServer.run("CREATE DATABASE \(copy) TEMPLATE \(original)", on: admin)
            let copyURL = Secret(url.reveal().replacing(original, with: copy))
            // A command only looks at it. A worker raises the alarm, and then uses it.
            let command = try await PostgresStore.open(url: copyURL)
            #expect(command.pendingIncidents().map(\.kind) == [.databaseReplaced])
            #expect(command.pendingIncidents().first?.text.contains("another database of the same server") == true)
            await command.close()
            let worker = try await PostgresStore.open(url: copyURL)
            _ = try await worker.report(report)
            #expect(worker.takeIncidents().map(\.kind) == [.databaseReplaced])
            _ = try await worker.report(report)
            await worker.close()
            for database in [url, copyURL] {
                let later = try await PostgresStore.open(url: database)
                #expect(later.pendingIncidents().isEmpty)
                await later.close()
            }
            try await PostgresServer.run("DROP DATABASE \(copy) WITH (FORCE)", on: admin)
        }
    }
}
