import Clocks
import FaultyDisk
import Glibc
import Store
import Testing

@testable import SQLiteStore

extension SQLiteDiskTests {
    @Suite("A fault that passes while a database is opened is not taken for damage", .timeLimit(.minutes(3)))
    struct PassingErrors {
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
                #expect(error?.code == .input)
                #expect(error?.message.contains(String(cString: strerror(code))) == true)
                faulty_disk_fail_opens(0)
                let second = try open(disk)
                #expect(try await second.grants(after: nil, in: nil, atMost: 10).count == 1)
                await second.close()
            }
        }

        @Test("A file that cannot be opened because of its rights stays a fault of the configuration")
        func forbiddenOpen() async throws {
            try await FailingDisk.with { disk in
                faulty_disk_fail_opens(EACCES)
                let error = #expect(throws: StoreError.self) { _ = try open(disk) }
                #expect(error?.code == .cannotOpen)
            }
        }

        @Test("Reads that give zeros once leave the file what it is, and it is not called damaged")
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
                        #expect(error.code == .input, "\(count): \(error)")
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
    }
}
