import Crypto
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("A backup is a complete snapshot of the database", .timeLimit(.minutes(10)))
struct SQLiteBackupTests {
    @Test("It is made while others write, and holds the data of its beginning")
    func whileWriting() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            let long = String(repeating: "t", count: 2500)
            let grants = try (1...1500 as ClosedRange<Int64>).map { try Sample.grant($0, accessToken: long) }
            try await store.add(grants)

            let seen = Mutex<[(copied: Int, all: Int)]>([])
            let writes = Mutex(0)
            try await store.backup(to: folder.path("backup.db")) { copied, all in
                seen.withLock { $0.append((copied, all)) }
                // Written by another connection, between two steps of the copy.
                do {
                    let other = try SQLiteConnection(path: path, timeout: .zero)
                    try other.write { () throws(StoreError) in
                        try other.execute(SQLQuery("write", sql: "UPDATE grants SET scope = 'changed'"))
                    }
                    writes.withLock { $0 += 1 }
                } catch {
                    Issue.record(error)
                }
            }
            let steps = seen.withLock { $0 }
            #expect(steps.count > 2)
            #expect(steps.map(\.copied) == steps.map(\.copied).sorted())
            #expect(steps.last?.copied == steps.last?.all)
            #expect(writes.withLock { $0 } == steps.count)
            #expect(try await store.grant(GrantID(rawValue: 1))?.scope == "changed")
            await store.close()

            #expect(try folder.names() == ["backup.db", "grants.db", "grants.db-leases-boot"])
            #expect(try folder.mode(of: "backup.db") == 0o600)
            let restored = try SQLiteStore(path: folder.path("backup.db"), timeSource: ManualTime(), bootID: "boot")
            #expect(try await restored.integrityProblems().isEmpty)
            #expect(try await restored.grants(after: nil, in: nil, atMost: 2000) == grants)
            await restored.close()
        }
    }

    @Test("It has no workers: those of the original do not use it")
    func workers() async throws {
        try await TemporaryFolder.with { folder in
            let time = ManualTime()
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: time, bootID: "boot")
            let key = try #require(KeyID("00000001"))
            _ = try await store.report(WorkerReport(id: "daemon", keyIDs: [key], sealingKeyID: key))
            try await store.backup(to: folder.path("backup.db"))
            #expect(try await store.liveWorkers().map(\.id) == ["daemon"])
            await store.close()
            let restored = try SQLiteStore(path: folder.path("backup.db"), timeSource: time, bootID: "boot")
            #expect(try await restored.liveWorkers() == [])
            await restored.close()
        }
    }

    @Test("It does not replace a file, and reports that")
    func existing() async throws {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            try await store.backup(to: folder.path("backup.db"))
            let content = try folder.bytes(of: "backup.db")
            let error = await #expect(throws: StoreError.self) {
                try await store.backup(to: folder.path("backup.db"))
            }
            #expect(error?.code == .cannotOpen)
            #expect(error?.message.contains("exists") == true)
            #expect(try folder.bytes(of: "backup.db") == content)
            await store.close()
            #expect(try folder.names() == ["backup.db", "grants.db", "grants.db-leases-boot"])
        }
    }

    @Test("A destination that cannot be written leaves nothing behind")
    func noFolder() async throws {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            let error = await #expect(throws: StoreError.self) {
                try await store.backup(to: folder.path("missing/backup.db"))
            }
            #expect(error?.code == .cannotOpen)
            await store.close()
            #expect(try folder.names() == ["grants.db", "grants.db-leases-boot"])
        }
    }

    @Test("It can replace a lost database")
    func restoring() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            let grant = try Sample.grant(1)
            try await store.add([grant])
            try await store.backup(to: folder.path("backup.db"))
            try await store.change(grant.id) { $0.disconnect(reason: .invalidGrant, at: start) }
            await store.close()
            try folder.replace("grants.db", with: "backup.db")
            let restored = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            #expect(try await restored.grant(grant.id) == grant)
            await restored.close()
        }
    }
}
