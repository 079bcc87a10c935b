import TestSupport
import Testing

@testable import Base
@testable import Storage

extension SQLiteDiskTests {
    @Suite("Results that SQLite reported as stored survive failed syncs and a power cut", .timeLimit(.minutes(10)))
    struct SQLitePowerCutTests {
        private static let grants: ClosedRange<Int64> = 1...12

        private func open(_ folder: TemporaryFolder) throws(StoreError) -> SQLiteStore {
            try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
        }

        /// Claims a grant, and stores a result for it until the store reports success.
        private func refresh(_ id: GrantID, in store: SQLiteStore) async throws {
            _ = try await store.claim([id], dueBy: nil, owner: "worker", for: .seconds(30))
            for _ in 0..<5 {
                do {
                    return try await store.change(id) { grant in
                        grant.setLease(nil)
                        grant.scope = "stored \(id.rawValue)"
                        return []
                    }
                } catch let error as StoreError {
                    #expect(error.code == .ioFailure)
                }
            }
            Issue.record("\(id) was never stored")
        }

        /// Expects that each result whose commit was reported is there after a power cut.
        private func expectStored(_ ids: [GrantID], on disk: FailingDisk) async throws {
            let lost = try await lost(of: ids, on: disk)
            #expect(lost.isEmpty, "lost \(lost.count) of \(ids.count) reported results")
        }

        /// Returns the results that are missing after a power cut.
        private func lost(of ids: [GrantID], on disk: FailingDisk) async throws -> [GrantID] {
            try await disk.afterPowerCut { rest in
                let store = try open(rest)
                let scopes = try await store.grants(after: nil, in: nil, atMost: 100).map { ($0.id, $0.scope) }
                let stored = Dictionary(uniqueKeysWithValues: scopes)
                #expect(try await store.integrityProblems().isEmpty)
                await store.close()
                return ids.filter { stored[$0] != "stored \($0.rawValue)" }
            }
        }

        private let ids = Self.grants.map { GrantID(rawValue: $0) }

        /// Opens a store with grants that each fill a page.
        private func openWithGrants(on disk: FailingDisk) async throws -> SQLiteStore {
            let store = try open(disk.folder)
            let token = String(repeating: "t", count: 3000)
            try await store.add(try Self.grants.map { try Sample.grant($0, accessToken: token) })
            return store
        }

        /// Closes a store as `kill -9` does.
        private func kill(_ store: SQLiteStore) async {
            for queue in [store.reader, store.scanner, store.writer] { await queue.close() }
        }

        private func checkpoint(_ store: SQLiteStore) async throws -> Bool {
            try await store.writer.run { connection throws(StoreError) in try connection.checkpoint() }
        }

        private func restartLog(of store: SQLiteStore, cuts: Bool) async throws -> Bool {
            try await store.writer.run { connection throws(StoreError) in try connection.restartLog(cuts: cuts) }
        }

        @Test("A store without syncs loses all reported results, which shows that the model of the disk works")
        func withoutSyncs() async throws {
            try await FailingDisk.with { disk in
                let store = try await openWithGrants(on: disk)
                try await store.writer.run { connection throws(StoreError) in
                    try connection.run(SQLQuery("leave syncs out", sql: "PRAGMA synchronous = OFF"))
                }
                for id in ids { try await refresh(id, in: store) }
                #expect(try await lost(of: ids, on: disk) == ids)
                await store.close()
            }
        }

        @Test("One sync fails, at any point of a sequence of claims and results", arguments: 0..<16)
        func failedSync(point: Int) async throws {
            try await FailingDisk.with { disk in
                let store = try await openWithGrants(on: disk)
                disk.failSyncs(of: "", after: point)
                for id in ids { try await refresh(id, in: store) }
                try await expectStored(ids, on: disk)
                await store.close()
            }
        }

        @Test(
            "Every third sync fails, and the log is copied and restarted in between",
            arguments: ["", "-wal", "grants.db"]
        )
        func manyFailedSyncs(suffix: String) async throws {
            try await FailingDisk.with { disk in
                let store = try await openWithGrants(on: disk)
                for (position, id) in ids.enumerated() {
                    if position.isMultiple(of: 3) { disk.failSyncs(of: suffix, after: 0) }
                    try await refresh(id, in: store)
                    do {
                        _ = try await restartLog(of: store, cuts: false)
                    } catch let error as StoreError {
                        #expect(error.code == .ioFailure)
                    }
                    try await expectStored(Array(ids[...position]), on: disk)
                }
                await store.close()
            }
        }

        @Test("A checkpoint that a reader cuts short, and one whose sync fails after it, lose nothing")
        func failedSyncOfDatabase() async throws {
            try await FailingDisk.with { disk in
                let store = try await openWithGrants(on: disk)
                for id in ids[..<6] { try await refresh(id, in: store) }
                do {
                    let reader = try SQLiteConnection.reader(path: store.path, leases: store.leases, timeout: .zero)
                    try reader.run(SQLQuery("begin", sql: "BEGIN"))
                    _ = try reader.integer(SQLQuery("count", sql: "SELECT count(*) FROM grants"))
                    for id in ids[6...] { try await refresh(id, in: store) }
                    #expect(try await !checkpoint(store), "the reader is in the way")
                    reader.rollBack()
                }
                disk.failSyncs(of: "grants.db", after: 0)
                let failure = await #expect(throws: StoreError.self) { _ = try await checkpoint(store) }
                #expect(failure?.code == .ioFailure)
                #expect(try await checkpoint(store))
                #expect(try await restartLog(of: store, cuts: true))
                try await expectStored(ids, on: disk)
                await store.close()
            }
        }

        @Test(
            "A process that is killed after a failed sync does not cause the loss of later commits",
            arguments: [false, true]
        )
        func killedAfterFailedSync(isRead: Bool) async throws {
            try await FailingDisk.with { disk in
                let first = try await openWithGrants(on: disk)
                try await refresh(ids[0], in: first)
                disk.failSyncs(of: "-wal", after: 0)
                await #expect(throws: StoreError.self) {
                    try await first.change(ids[1]) { grant in
                        grant.scope = "not reported"
                        return []
                    }
                }
                await kill(first)
                // A reader prevents a restart of the log, which leaves the other way of making it durable.
                let reader = try SQLiteConnection.reader(path: first.path, leases: first.leases, timeout: .zero)
                if isRead {
                    try reader.run(SQLQuery("begin", sql: "BEGIN"))
                    _ = try reader.integer(SQLQuery("count", sql: "SELECT count(*) FROM grants"))
                }
                let second = try open(disk.folder)
                for id in ids[2...] { try await refresh(id, in: second) }
                try await expectStored([ids[0]] + ids[2...], on: disk)
                reader.rollBack()
                await second.close()
            }
        }
    }
}
