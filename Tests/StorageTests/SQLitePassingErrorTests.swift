import Crypto
import FaultyDisk
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Base
@testable import Storage

extension SQLiteDiskTests {
    @Suite("A fault that passes while a database is opened is not reported as damage", .timeLimit(.minutes(10)))
    struct SQLitePassingErrorTests {
        private func open(_ disk: FailingDisk) throws(StoreError) -> SQLiteStore {
            try SQLiteStore(path: disk.folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
        }

        @Test("A file that cannot be opened for now may be opened later", arguments: [EIO, EMFILE, ENFILE, ENOMEM])
        func failedOpen(code: Int32) async throws {
            try await FailingDisk.with { disk in
                let first = try open(disk)
                try await first.add([try Sample.grant(1)])
                await first.close()
                faulty_disk_fail_opens(code)
                let error = #expect(throws: StoreError.self) { _ = try open(disk) }
                #expect(error?.code == .ioFailure)
                #expect(error?.message.contains(String(cString: strerror(code))) == true)
                faulty_disk_fail_opens(0)
                let second = try open(disk)
                #expect(try await second.grants(after: nil, in: nil, atMost: 10).count == 1)
                await second.close()
            }
        }

        @Test("An existing writable file that is reported as missing may be opened later")
        func unexplainedOpen() async throws {
            try await FailingDisk.with { disk in
                await (try open(disk)).close()
                faulty_disk_fail_opens(ENOENT)
                let error = #expect(throws: StoreError.self) { _ = try open(disk) }
                #expect(error?.code == .ioFailure)
                #expect(error?.message.contains("one of its files could not be opened") == true)
                faulty_disk_fail_opens(0)
                await (try open(disk)).close()
            }
        }

        @Test(
            "A writable file that SQLite has opened read-only may be opened later",
            arguments: ["grants.db", "-leases-boot"]
        )
        func openedReadOnly(suffix: String) async throws {
            try await FailingDisk.with { disk in
                await (try open(disk)).close()
                faulty_disk_open_read_only(suffix)
                let error = #expect(throws: StoreError.self) { _ = try open(disk) }
                #expect(error?.code == .ioFailure)
                #expect(error?.message.contains("although its permissions allow writing") == true)
                faulty_disk_open_read_only(nil)
                await (try open(disk)).close()
            }
        }

        @Test("A shared index that was opened read-only may be opened later, if it is writable")
        func readOnlyIndex() async throws {
            try await TemporaryFolder.with { folder in
                let path = folder.path("grants.db")
                try DatabaseFile.create(path, unlessExists: false)
                let code = { (path: String) in
                    // SQLITE_READONLY
                    StoreError(resultCode: 8, detail: "attempt to write", path: path, during: "begin").code
                }
                #expect(code(path) == .ioFailure)
                #expect(code(folder.path("none/grants.db")) == .readOnly)
            }
        }

        @Test("A file that cannot be opened because of its permissions is a fault of the configuration")
        func forbiddenOpen() async throws {
            try await FailingDisk.with { disk in
                faulty_disk_fail_opens(EACCES)
                let error = #expect(throws: StoreError.self) { _ = try open(disk) }
                #expect(error?.code == .cannotOpen)
            }
        }

        @Test("A file is not called damaged after reads that returned zeros once")
        func garbledReads() async throws {
            try await FailingDisk.with { disk in
                let first = try open(disk)
                try await first.add(try Sample.grants(1...50))
                await first.close()
                var failures = 0
                for count in 1...3 as ClosedRange<Int32> {
                    faulty_disk_garble_reads("grants.db", count)
                    do throws(StoreError) {
                        await (try open(disk)).close()
                    } catch {
                        failures += 1
                        #expect(error.code == .ioFailure, "\(count): \(error)")
                        #expect(!error.message.contains("put the latest backup"))
                    }
                    faulty_disk_garble_reads("", 0)
                }
                #expect(failures > 0)
                let last = try open(disk)
                #expect(try await last.grants(after: nil, in: nil, atMost: 100).count == 50)
                #expect(try await last.integrityProblems().isEmpty)
                await last.close()
            }
        }

        @Test(
            "Failing reads, once or from any read on, are not reported as damage",
            arguments: ["grants.db", "grants.db-wal", "grants.db-leases-boot"],
            [1, Int32.max]
        )
        func failedReads(suffix: String, count: Int32) async throws {
            try await FailingDisk.with { disk in
                // Stays open, so that there is a log to read.
                let other = try open(disk)
                try await other.add(try Sample.grants(1...50))
                var failures = 0
                for first in 0..<Int32.max {
                    faulty_disk_fail_reads(suffix, first, count)
                    do {
                        try await use(disk)
                    } catch let error as StoreError {
                        failures += 1
                        #expect(error.code == .ioFailure, "\(first): \(error)")
                    }
                    let isThrough = faulty_disk_failed_reads_left() == count
                    faulty_disk_fail_reads("", 0, 0)
                    if isThrough { break }
                }
                #expect(failures > 0)
                #expect(try await other.integrityProblems().isEmpty)
                await other.close()
            }
        }

        /// Uses the store as a worker does at its start.
        private func use(_ disk: FailingDisk) async throws {
            let store = try open(disk)
            do {
                let key = try #require(try Sample.grant(1).refreshToken?.sealed.keyID)
                _ = try await store.report(WorkerReport(id: "w", keyIDs: [key], sealingKeyID: key))
                _ = try await store.grants(after: nil, in: nil, atMost: 100)
            } catch {
                await store.close()
                throw error
            }
            await store.close()
        }

        @Test("A second check with failed reads does not call the file damaged, whichever read fails first")
        func failedSecondLook() async throws {
            try await FailingDisk.with { disk in
                let store = try open(disk)
                try await store.add(try Sample.grants(1...50))
                await store.close()
                var suspicion = StoreError(.corrupt, "suspicion")
                suspicion.suspectedFile = store.path
                for first in 0..<Int32.max {
                    faulty_disk_fail_reads("grants.db", first, .max)
                    let error = SQLiteStore.confirmed(suspicion, bootID: "boot")
                    #expect(error.code == .ioFailure, "\(first): \(error)")
                    let isThrough = faulty_disk_failed_reads_left() == .max
                    #expect(error.message.contains("found the whole file intact") == isThrough)
                    faulty_disk_fail_reads("", 0, 0)
                    if isThrough { break }
                }
            }
        }

        @Test("Damage that one read reports is checked again before a process ends for it")
        func suspicion() async throws {
            try await FailingDisk.with { disk in
                let store = try open(disk)
                try await store.add(try Sample.grants(1...50))
                await store.close()
                let again = try open(disk)
                faulty_disk_garble_reads("grants.db", .max)
                let error = await #expect(throws: StoreError.self) {
                    _ = try await again.grants(after: nil, in: nil, atMost: 100)
                }
                #expect(error?.code == .corrupt)
                faulty_disk_garble_reads("", 0)
                let suspicion = try #require(error)
                #expect(SQLiteStore.confirmed(suspicion, bootID: "boot").code == .ioFailure)
                faulty_disk_garble_reads("grants.db", .max)
                let confirmed = SQLiteStore.confirmed(suspicion, bootID: "boot")
                faulty_disk_garble_reads("", 0)
                #expect(confirmed.code == .corrupt)
                #expect(confirmed.message.contains("put the latest backup"))
                await again.close()
            }
        }

        @Test("A damaged file of leases is replaced at the start")
        func damagedLeases() async throws {
            try await FailingDisk.with { disk in
                let store = try open(disk)
                try await store.add([try Sample.grant(1)])
                await store.close()
                let path = disk.folder.path("grants.db-leases-boot")
                try Data(repeating: 7, count: 8192).write(to: URL(fileURLWithPath: path))
                let again = try open(disk)
                try await again.add([try Sample.grant(2)])
                await again.close()
            }
        }
    }
}
