import FaultyDisk
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Storage

extension SQLiteDiskTests {
    @Suite("No checkpoint runs while a process can commit, and the log stays short", .timeLimit(.minutes(10)))
    struct SQLiteCheckpointTests {
        /// The results of other connections that tried to begin a commit while the database file was written.
        private static let attempts = Mutex<[StoreError.Code?]>([])
        private static let path = Mutex("")

        @Test("A commit of another connection is excluded while a checkpoint writes the database file")
        func exclusion() async throws {
            try await FailingDisk.with { disk in
                let store = try SQLiteStore(
                    path: disk.folder.path("grants.db"),
                    timeSource: ManualTime(),
                    bootID: "boot"
                )
                try await store.add(try Sample.grants(1...50))
                Self.attempts.withLock { $0 = [] }
                Self.path.withLock { $0 = store.path }
                faulty_disk_before_write("grants.db", { _ in Self.tryToCommit() }, nil)
                let isWhole = try await store.writer.run { connection throws(StoreError) in
                    try connection.checkpoint()
                }
                faulty_disk_before_write("", nil, nil)
                #expect(isWhole)
                let attempts = Self.attempts.withLock { $0 }
                #expect(!attempts.isEmpty)
                #expect(attempts.allSatisfy { $0 == .busy }, "\(attempts)")
                await store.close()
            }
        }

        private static func tryToCommit() {
            let outcome: StoreError.Code?
            do {
                let other = try SQLiteConnection(path: path.withLock { $0 }, timeout: .zero)
                try other.begin()
                other.rollBack()
                outcome = nil
            } catch {
                outcome = error.code
            }
            attempts.withLock { $0.append(outcome) }
        }

        @Test("The logs stay short while two processes write and readers come and go")
        func boundedLog() async throws {
            try await TemporaryFolder.with { folder in
                let path = folder.path("grants.db")
                let stores = try (0..<2).map { _ in
                    try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
                }
                let token = String(repeating: "t", count: 3500)
                try await stores[0].add(try (1...200).map { try Sample.grant($0, accessToken: token) })
                let reading = Task {
                    var reads = 0
                    while !Task.isCancelled {
                        reads += try await stores[0].grants(after: nil, in: nil, atMost: 20).count
                    }
                    return reads
                }
                async let first: Void = Self.rewriteGrants(of: stores[0], half: 0)
                async let second: Void = Self.rewriteGrants(of: stores[1], half: 1)
                _ = try await (first, second)
                reading.cancel()
                #expect(try await reading.value > 0)
                // A log without checkpoints has six times this length; on a machine under load readers delay one for a
                // while.
                let limit = 4 * LogState(salts: 0, frames: LogState.checkpointLength, copied: 0, pageSize: 4096).size
                let size = try folder.bytes(of: "grants.db-wal").count
                #expect(size < limit, "\(size) bytes")
                for store in stores { await store.close() }
            }
        }

        @Test("A process that ends a checkpoint while another begins one is not taken for a foreign program")
        func overlappingCheckpoints() async throws {
            try await TemporaryFolder.with { folder in
                let path = folder.path("grants.db")
                let first = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
                let second = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
                try await first.add(try Sample.grants(1...50))
                try await second.writer.run { connection throws(StoreError) in try connection.beginCheckpoint() }
                let isRestarted = try await first.writer.run { connection throws(StoreError) in
                    try connection.restartLog(cuts: false)
                }
                #expect(isRestarted)
                // The second store would copy these commits, longer than the clock's step after the first one's note.
                try await first.add(try Sample.grants(51...1000))
                let isComplete = try await second.writer.run { connection throws(StoreError) in
                    try connection.endCheckpoint()
                }
                #expect(isComplete == nil)
                let isCopied = try await second.writer.run { connection throws(StoreError) in
                    try connection.checkpoint()
                }
                #expect(isCopied)
                try await first.add(try Sample.grants(1001...1010))
                try await second.add(try Sample.grants(1011...1020))
                await first.close()
                await second.close()
            }
        }

        @Test("A restart of the log does not undo a change of the schema by another process")
        func restartDuringUpgrade() async throws {
            try await TemporaryFolder.with { folder in
                let path = folder.path("grants.db")
                let stores = try (0..<2).map { _ in
                    try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
                }
                let restarting = Task {
                    while !Task.isCancelled {
                        _ = try await stores[0].writer.run { connection throws(StoreError) in
                            try connection.restartLog(cuts: true)
                        }
                    }
                }
                // By chance the other process reads the version right before one of these changes, and writes after it.
                for version in 100..<3100 as Range<Int64> {
                    let former = try await stores[1].writer.run { connection throws(StoreError) in
                        try connection.write { () throws(StoreError) in
                            let former = try connection.integer(SQLiteSchema.readVersion)
                            try connection.execute(SQLQuery("upgrade", sql: "PRAGMA user_version = \(version)"))
                            return former
                        }
                    }
                    #expect(version == 100 || former == version - 1)
                }
                restarting.cancel()
                try await restarting.value
                for store in stores { await store.close() }
            }
        }

        /// Writes some 12,000 pages.
        private static func rewriteGrants(
            of store: SQLiteStore,
            half: Int,
            rounds: Range<Int> = 0..<120
        ) async throws {
            for round in rounds {
                try await store.transact { transaction in
                    for number in 1...100 as ClosedRange<Int64> {
                        let id = GrantID(rawValue: Int64(half) * 100 + number)
                        guard var grant = try transaction.grant(id) else { continue }
                        grant.scope = "round \(round)"
                        try transaction.update(grant)
                    }
                }
            }
        }

        @Test("Where space is short, the log is copied before it has filled the disk")
        func shortSpace() async throws {
            try await FailingDisk.with { disk in
                let store = try await Self.openWithLittleSpace(on: disk)
                try await store.writer.run { connection throws(StoreError) in
                    connection.freeSpace = { faulty_disk_free_space() }
                }
                // Without an early checkpoint the log needs some 30 MB.
                try await Self.rewriteGrants(of: store, half: 0)
                #expect(try disk.folder.bytes(of: "grants.db-wal").count < 5 << 20)
                #expect(try await store.integrityProblems().isEmpty)
                await store.close()
            }
        }

        @Test("A log that has filled the disk is copied, so that the next attempt of a commit succeeds")
        func fullDisk() async throws {
            try await FailingDisk.with { disk in
                let store = try await Self.openWithLittleSpace(on: disk)
                // As if the space were a quota, which the system does not report.
                try await store.writer.run { connection throws(StoreError) in connection.freeSpace = { nil } }
                var failures = 0
                for round in 0..<120 {
                    do {
                        try await Self.rewriteGrants(of: store, half: 0, rounds: round..<round + 1)
                    } catch let error as StoreError {
                        failures += 1
                        #expect(error.code == .diskFull)
                        try await Self.rewriteGrants(of: store, half: 0, rounds: round..<round + 1)
                    }
                }
                #expect(failures > 0)
                #expect(try await store.grant(GrantID(rawValue: 1))?.scope == "round 119")
                #expect(try await store.integrityProblems().isEmpty)
                await store.close()
            }
        }

        /// Opens a store with 100 grants on a disk with 6 MB of free space.
        private static func openWithLittleSpace(on disk: FailingDisk) async throws -> SQLiteStore {
            let store = try SQLiteStore(
                path: disk.folder.path("grants.db"),
                timeSource: ManualTime(),
                bootID: "boot"
            )
            let token = String(repeating: "t", count: 3500)
            try await store.add(try (1...100).map { try Sample.grant($0, accessToken: token) })
            try await rewriteGrants(of: store, half: 0, rounds: 120..<123)
            _ = try await store.writer.run { connection throws(StoreError) in
                try connection.restartLog(cuts: true)
            }
            faulty_disk_limit_space(6 << 20)
            return store
        }

        @Test("The log of the leases stays short as well")
        func boundedLeaseLog() async throws {
            try await TemporaryFolder.with { folder in
                let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
                try await store.add(try Sample.grants(1...10))
                let ids = (1...10).map { GrantID(rawValue: $0) }
                for _ in 0..<1500 {
                    let claimed = try await store.claim(ids, dueBy: nil, owner: "worker", for: .seconds(30))
                    try await store.release(
                        Dictionary(uniqueKeysWithValues: claimed.map { ($0.id, $0.lease?.claim ?? 0) })
                    )
                }
                // A log without checkpoints has six times this length; on a machine under load readers delay one for a
                // while.
                let limit =
                    4 * LogState(salts: 0, frames: LogState.leaseCheckpointLength, copied: 0, pageSize: 4096).size
                #expect(try folder.bytes(of: "grants.db-leases-boot-wal").count < limit)
                await store.close()
            }
        }
    }

    @Test(
        "The versions of SQLite that have the WAL-reset bug are known",
        arguments: [
            (3_006_023, false), (3_007_000, true), (3_040_001, true), (3_044_005, true), (3_044_006, false),
            (3_045_000, true), (3_050_006, true), (3_050_007, false), (3_051_000, true), (3_051_002, true),
            (3_051_003, false), (3_053_000, false),
        ]
    )
    func affectedVersions(number: Int, isAffected: Bool) {
        #expect(SQLiteStore.hasLogResetBug(library: number) == isAffected)
    }
}
