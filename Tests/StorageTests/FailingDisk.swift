import FaultyDisk
import Testing

/// A disk that fails on request, modelled on files in memory.
///
/// Only one test at a time can use it, so its suite must be serialized.
struct FailingDisk {
    let folder: TemporaryFolder

    static func with<Result>(_ body: (FailingDisk) async throws -> Result) async throws -> Result {
        try await TemporaryFolder.with { folder in
            faulty_disk_install()
            faulty_disk_begin(folder.root)
            defer { faulty_disk_end() }
            return try await body(FailingDisk(folder: folder))
        }
    }

    /// The number of syncs so far.
    var syncs: Int { Int(faulty_disk_syncs()) }

    /// Lets `passed` syncs of files whose names end in `suffix` succeed, and the `count` after them fail.
    func failSyncs(of suffix: String, after passed: Int, count: Int = 1) {
        faulty_disk_fail_syncs(suffix, Int32(passed), Int32(count))
    }

    /// Calls `body` with a new folder that holds the files as a power cut now would leave them.
    func afterPowerCut<Result>(_ body: (TemporaryFolder) async throws -> Result) async throws -> Result {
        try await TemporaryFolder.with { rest in
            try #require(faulty_disk_cut_power(rest.root) == 0)
            return try await body(rest)
        }
    }
}

/// The suites that share the failing disk, one test at a time.
@Suite("The SQLite store on a disk that fails", .serialized)
struct SQLiteDiskTests {}
