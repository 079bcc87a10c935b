import Crypto
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("A store whose files are changed or removed stops storing", .timeLimit(.minutes(10)))
struct SQLiteReplacementTests {
    private let id = GrantID(rawValue: 1)

    private func open(_ folder: TemporaryFolder) throws(StoreError) -> SQLiteStore {
        try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
    }

    /// Runs `change` on the files of a store in use, and expects that neither claims nor results are stored after it.
    private func expectRefusal(
        after change: (TemporaryFolder, SQLiteStore) async throws -> Void,
        then: (TemporaryFolder) async throws -> Void = { _ in }
    ) async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder)
            try await store.add(try Sample.grants(1...100))
            _ = try await store.writer.run { connection throws(StoreError) in try connection.checkpoint() }
            try await store.change(id) { grant in
                grant.scope = "stored before"
                return []
            }
            try await change(folder, store)
            let refused = await #expect(throws: StoreError.self) {
                try await store.change(id) { grant in
                    grant.scope = "stored after"
                    return []
                }
            }
            #expect(refused?.code == .replaced)
            #expect(refused?.mayPass == false)
            #expect(refused?.message.contains(store.path) == true)
            await store.close()
            try await then(folder)
        }
    }

    @Test("The file is truncated")
    func truncated() async throws {
        try await expectRefusal { folder, _ in
            #expect(truncate(folder.path("grants.db"), 8192) == 0)
        }
    }

    /// Writes to the database file in place.
    private func write(_ bytes: Data, at offset: UInt64 = 0, in folder: TemporaryFolder) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: folder.path("grants.db")))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    private func checkpoint(_ store: SQLiteStore) async throws {
        let isWhole = try await store.writer.run { connection throws(StoreError) in try connection.checkpoint() }
        #expect(isWhole)
    }

    /// Sets the modification time of the database file, in seconds since 1970, and leaves the content as it is.
    private func touch(_ folder: TemporaryFolder, at time: Int = 1_700_000_000) {
        var times = (timespec(tv_sec: time, tv_nsec: 0), timespec(tv_sec: time, tv_nsec: 0))
        let result = withUnsafePointer(to: &times) { times in
            times.withMemoryRebound(to: timespec.self, capacity: 2) { times in
                utimensat(AT_FDCWD, folder.path("grants.db"), times, 0)
            }
        }
        #expect(result == 0)
    }

    @Test(
        "The file is overwritten in place by an older copy of the same size, with or without its time",
        arguments: [true, false]
    )
    func overwritten(setsTime: Bool) async throws {
        try await expectRefusal { folder, store in
            // The first change of a row makes it longer, which might split a page.
            try await store.change(id) { grant in
                grant.scope = "stored early."
                return []
            }
            try await checkpoint(store)
            let older = try folder.bytes(of: "grants.db")
            try await store.change(id) { grant in
                grant.scope = "stored later."
                return []
            }
            try await checkpoint(store)
            #expect(try folder.bytes(of: "grants.db").count == older.count)
            try write(older, in: folder)
            if setsTime { touch(folder) }
        }
    }

    @Test("One page of the file is overwritten, after its time was changed before")
    func overwrittenPage() async throws {
        try await expectRefusal { folder, store in
            touch(folder)
            try await store.add([try Sample.grant(101)])
            let length = try folder.bytes(of: "grants.db").count
            try write(Data(repeating: 7, count: 16), at: UInt64(length / 2), in: folder)
            touch(folder, at: 1_700_000_001)
        }
    }

    @Test("A new modification time, and content that is written again unchanged, do not count as a change")
    func touched() async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder)
            // Before and after the first checkpoint.
            for round in 0..<3 {
                let other = try open(folder)
                touch(folder, at: 1_700_000_000 + round)
                try await store.add([try Sample.grant(Int64(4 * round + 1))])
                try await other.add([try Sample.grant(Int64(4 * round + 2))])
                try write(try folder.bytes(of: "grants.db"), in: folder)
                try await store.add([try Sample.grant(Int64(4 * round + 3))])
                touch(folder, at: 4_000_000_000 + round)
                try await other.add([try Sample.grant(Int64(4 * round + 4))])
                await other.close()
                try await checkpoint(store)
            }
            #expect(try await store.grants(after: nil, in: nil, atMost: 100).count == 12)
            #expect(try await store.integrityProblems().isEmpty)
            await store.close()
        }
    }

    @Test("A file too large to be compared is not used after its time was set; the error names touch")
    func largeFile() async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder)
            try await store.add([try Sample.grant(1)])
            _ = try await store.writer.run { connection throws(StoreError) in
                connection.maximumComparedSize = 4096
                return try connection.checkpoint()
            }
            try await store.add([try Sample.grant(2)])
            touch(folder)
            let refused = await #expect(throws: StoreError.self) { try await store.add([try Sample.grant(3)]) }
            #expect(refused?.code == .replaced)
            #expect(refused?.message.contains("touch") == true)
            await store.close()
        }
    }

    @Test("The file is renamed")
    func renamed() async throws {
        try await expectRefusal { folder, _ in try folder.rename("grants.db", to: "elsewhere.db") }
    }

    @Test("The log is truncated")
    func truncatedLog() async throws {
        try await expectRefusal { folder, _ in
            #expect(truncate(folder.path("grants.db-wal"), 0) == 0)
        }
    }

    @Test("The log is deleted, and its content is saved into the file")
    func deletedLog() async throws {
        try await expectRefusal(
            after: { folder, _ in #expect(unlink(folder.path("grants.db-wal")) == 0) },
            then: { folder in
                let again = try open(folder)
                #expect(try await again.grant(id)?.scope == "stored before")
                #expect(try await again.integrityProblems().isEmpty)
                await again.close()
            }
        )
    }

    /// The ways in which a file of leases is lost.
    enum LeaseLoss: String, CaseIterable {
        case deleted, withoutIndex, withoutLog, garbled, replacedByGarbage, replacedByOlderCopy, replacedByDatabase
        case replacedByOtherLeases

        enum Discoverer {
            case sameProcess, nextProcess
        }

        /// Who can be the first to find out.
        var discoverers: [Discoverer] {
            switch self {
            // The next process gets an error, until one that has the file open has made a new one.
            case .withoutLog: [.sameProcess]
            // A process that has the file open goes on with the pages in its cache.
            case .garbled: [.nextProcess]
            default: [.sameProcess, .nextProcess]
            }
        }

        /// Harms the file of leases of a database in use.
        func cause(at leases: String, olderCopy: Data, in folder: TemporaryFolder) throws {
            let other = folder.path("other.db")
            switch self {
            case .deleted: #expect(unlink(leases) == 0)
            case .withoutIndex: #expect(unlink(leases + "-shm") == 0)
            case .withoutLog: #expect(unlink(leases + "-wal") == 0)
            case .garbled:
                for ending in ["", "-wal"] {
                    try Data(repeating: 7, count: 8192).write(to: URL(filePath: leases + ending))
                }
            case .replacedByGarbage:
                try Data(repeating: 7, count: 8192).write(to: URL(filePath: other))
                #expect(rename(other, leases) == 0)
            case .replacedByOlderCopy:
                try olderCopy.write(to: URL(filePath: other))
                #expect(rename(other, leases) == 0)
            case .replacedByDatabase:
                try Self.makeDatabase(at: other)
                #expect(rename(other, leases) == 0)
            case .replacedByOtherLeases:
                // The names of the tables are right, and their columns are not.
                try Self.makeDatabase(at: other, tables: ["leases", "checkpoints", "pause"])
                #expect(rename(other, leases) == 0)
            }
        }

        static func makeDatabase(at path: String, tables: [String] = ["notes"]) throws {
            try DatabaseFile.create(path, unlessExists: false)
            let database = try SQLiteConnection(path: path, timeout: .zero)
            for table in tables { try database.execute("CREATE TABLE \(table) (text)", during: "making a table") }
        }
    }

    @Test(
        "A lost file of leases is made again, and claims pause until the lost leases have ended",
        arguments: LeaseLoss.allCases.flatMap { loss in loss.discoverers.map { (loss, $0 == .nextProcess) } }
    )
    func lostLeases(loss: LeaseLoss, opensElsewhere: Bool) async throws {
        try await TemporaryFolder.with { folder in
            let time = ManualTime()
            let open = { () throws(StoreError) in
                try SQLiteStore(path: folder.path("grants.db"), timeSource: time, bootID: "boot")
            }
            let store = try open()
            try await store.add(try Sample.grants(1...3))
            let key = try #require(try Sample.grant(1).refreshToken?.sealed.keyID)
            _ = try await store.report(WorkerReport(id: "w", keyIDs: [key], sealingKeyID: key))
            try await checkpoint(store)
            let leases = folder.path("grants.db-leases-boot")
            let olderCopy = try Data(contentsOf: URL(filePath: leases))
            #expect(try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30)).count == 1)
            try loss.cause(at: leases, olderCopy: olderCopy, in: folder)
            let other = opensElsewhere ? try open() : store
            // The note of this checkpoint is in the new file alone.
            try await other.add([try Sample.grant(4)])
            try await checkpoint(other)
            try await store.change(id) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await other.add([try Sample.grant(5)])
            let second = GrantID(rawValue: 2)
            for claimant in [store, other] {
                #expect(try await claimant.claim([second], dueBy: nil, owner: "x", for: .seconds(30)).isEmpty)
            }
            time.advance(by: Lease.span)
            #expect(try await store.claim([second], dueBy: nil, owner: "w", for: .seconds(30)).count == 1)
            #expect(try await other.claim([second], dueBy: nil, owner: "x", for: .seconds(30)).isEmpty)
            #expect(try await store.grant(second)?.lease?.owner == "w")
            try await checkpoint(store)
            try await other.add([try Sample.grant(6)])
            #expect(try await store.integrityProblems().isEmpty)
            if opensElsewhere { await other.close() }
            await store.close()
        }
    }

    @Test("Another file in the place of the leases is renamed, each to a name of its own, and the store says where")
    func setAside() async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder)
            try await store.add([try Sample.grant(1)])
            let leases = folder.path("grants.db-leases-boot")
            var contents: [Data] = []
            for number in 1...2 {
                try LeaseLoss.makeDatabase(at: folder.path("other.db"), tables: ["notes_\(number)"])
                contents.append(try folder.bytes(of: "other.db"))
                #expect(rename(folder.path("other.db"), leases) == 0)
                try await store.add([try Sample.grant(Int64(number + 1))])
            }
            let names = ["grants.db-leases-boot.set-aside", "grants.db-leases-boot.set-aside-2"]
            #expect(try names.map { try folder.bytes(of: $0) } == contents)
            let texts = names.map { "another file was in the place of \(leases): it is \(folder.path($0)) now" }
            #expect(store.takeIncidents().map(\.text) == texts)
            #expect(unlink(leases) == 0)
            try await store.add([try Sample.grant(4)])
            #expect(store.takeIncidents().isEmpty, "nothing is left to rename of a deleted file")
            await store.close()
        }
    }

    @Test("A file of leases that another database has overwritten is made again by the next process")
    func overwrittenLeases() async throws {
        try await TemporaryFolder.with { folder in
            let time = ManualTime()
            let open = { () throws(StoreError) in
                try SQLiteStore(path: folder.path("grants.db"), timeSource: time, bootID: "boot")
            }
            let store = try open()
            try await store.add(try Sample.grants(1...3))
            try await checkpoint(store)
            #expect(try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30)).count == 1)
            try LeaseLoss.makeDatabase(at: folder.path("other.db"))
            let leases = folder.path("grants.db-leases-boot")
            #expect(truncate(leases, 0) == 0)
            let file = try FileHandle(forWritingTo: URL(filePath: leases))
            try file.write(contentsOf: try folder.bytes(of: "other.db"))
            try file.close()
            let other = try open()
            #expect(try await other.claim([id], dueBy: nil, owner: "x", for: .seconds(30)).isEmpty)
            #expect(try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30)).isEmpty)
            time.advance(by: Lease.span)
            #expect(try await other.claim([id], dueBy: nil, owner: "x", for: .seconds(30)).count == 1)
            #expect(try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30)).isEmpty)
            #expect(try await store.integrityProblems().isEmpty)
            await other.close()
            await store.close()
        }
    }

    @Test("An overwritten database is noticed although the file of leases was deleted with it")
    func overwrittenWithoutLeases() async throws {
        try await expectRefusal { folder, store in
            let older = try folder.bytes(of: "grants.db")
            try await store.change(id) { grant in
                grant.scope = "stored later."
                return []
            }
            try await checkpoint(store)
            try write(older, in: folder)
            #expect(unlink(folder.path("grants.db-leases-boot")) == 0)
        }
    }

    @Test("The shared index is deleted: the database is complete, and the advice is to start again")
    func deletedIndex() async throws {
        try await expectRefusal(
            after: { folder, _ in #expect(unlink(folder.path("grants.db-shm")) == 0) },
            then: { folder in
                let again = try open(folder)
                #expect(try await again.grant(id)?.scope == "stored before")
                await again.close()
            }
        )
    }

    @Test("Checkpoints of another process do not count as a foreign change")
    func checkpointsElsewhere() async throws {
        try await TemporaryFolder.with { folder in
            let stores = try (0..<2).map { _ in try open(folder) }
            for number in 1...20 as ClosedRange<Int64> {
                let store = stores[Int(number) % 2]
                try await store.add([try Sample.grant(number)])
                _ = try await store.writer.run { connection throws(StoreError) in try connection.checkpoint() }
            }
            let third = try open(folder)
            try await third.add([try Sample.grant(21)])
            await third.close()
            for (number, store) in stores.enumerated() { try await store.add([try Sample.grant(22 + Int64(number))]) }
            for store in stores { await store.close() }
        }
    }

    @Test("A store that was copied elsewhere refuses claims, results and sign-ins, and can be read")
    func moved() async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder)
            let grant = try Sample.grant(1)
            try await store.add([grant])
            let claimed = try await store.claim([id], dueBy: nil, owner: "worker", for: .seconds(30))
            let claim = try #require(claimed.first?.lease?.claim)
            let other = try open(folder)
            try await other.markMoved(to: "postgres://new")
            let key = try #require(grant.refreshToken?.sealed.keyID)
            let uses: [@Sendable () async throws -> Void] = [
                { _ = try await store.claim([id], dueBy: nil, owner: "worker", for: .seconds(30)) },
                { _ = try await store.renew([id: claim], for: .seconds(30)) },
                { try await store.add([try Sample.grant(2)]) },
                { try await store.transact { _ = try $0.session(Sample.sessionID(1), ofUser: "user") } },
                { _ = try await store.report(WorkerReport(id: "w", keyIDs: [key], sealingKeyID: key)) },
                { _ = try await store.claimNotices(owner: "w", for: .seconds(30)) },
                { _ = try await store.removeExpired(at: start) },
            ]
            for use in uses {
                let refused = await #expect(throws: StoreError.self) { try await use() }
                #expect(refused?.code == .moved)
                #expect(refused?.message.contains("postgres://new") == true)
            }
            #expect(try await store.grant(id)?.refreshToken == grant.refreshToken)
            try await other.markMoved(to: nil)
            #expect(try await store.renew([id: claim], for: .seconds(30)) == [id])
            await other.close()
            await store.close()
        }
    }
}
