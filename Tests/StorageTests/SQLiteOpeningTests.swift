import Foundation
import Glibc
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("The SQLite store opens its own files, and refuses others with a clear error", .timeLimit(.minutes(10)))
struct SQLiteOpeningTests {
    private func open(_ path: String) throws(StoreError) -> SQLiteStore {
        try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot", timeout: .seconds(10))
    }

    private func connection(to path: String) throws(StoreError) -> SQLiteConnection {
        try DatabaseFile.create(path, unlessExists: true)
        return try SQLiteConnection(path: path, timeout: .zero)
    }

    /// Returns the error of opening `path`, which has to name the path.
    private func refusal(of path: String) throws -> StoreError {
        let error = try #require(throws: StoreError.self) { _ = try open(path) }
        #expect(path.isEmpty || error.message.contains(path))
        return error
    }

    @Test("A folder whose names cannot be read is refused: it could hold leases of a running worker")
    func unlistedFolder() async throws {
        try await TemporaryFolder.with { folder in
            let file = folder.path("file")
            close(Glibc.open(file, O_CREAT | O_WRONLY, 0o600))
            let leases = LeaseFile(of: file + "/grants.db", bootID: "boot")
            let error = #expect(throws: StoreError.self) { try leases.removeFormer() }
            #expect(error?.message.contains("listing its folder fails with \"Not a directory\"") == true)
        }
    }

    @Test("Only the owner can read a new database and its log")
    func modes() async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder.path("grants.db"))
            try await store.add([try Sample.grant(1)])
            #expect(
                try folder.names() == [
                    "grants.db", "grants.db-leases-boot", "grants.db-leases-boot-shm", "grants.db-leases-boot-wal",
                    "grants.db-shm", "grants.db-wal",
                ]
            )
            for name in try folder.names() {
                #expect(try folder.mode(of: name) == 0o600)
            }
            await store.close()
            #expect(try folder.names() == ["grants.db", "grants.db-leases-boot"])
        }
    }

    @Test(
        "Root opens no database beside which SQLite would give a file of root away",
        .enabled(if: geteuid() == 0),
        arguments: ["-wal", "-shm", "-journal", "-leases-boot-wal", "-leases-boot-shm"],
        [true, false]
    )
    func linkedFiles(ending: String, isHardLink: Bool) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            await (try open(path)).close()
            try #require(chown(path, 4321, 4321) == 0 && chown("\(path)-leases-boot", 4321, 4321) == 0)
            let own = folder.path("of-root")
            close(Glibc.open(own, O_CREAT | O_WRONLY, 0o600))
            let link = path + ending
            try #require((isHardLink ? Glibc.link(own, link) : symlink(own, link)) == 0)
            let error = try #require(throws: StoreError.self) { _ = try open(path) }
            #expect(error.message.contains("\(link) has several names or is a link"))
            #expect(FileIdentity(path: own)?.owner == 0)
        }
    }

    @Test("Root gives the owner of the database a new file, and no other that was put in its place")
    func givenFiles() async throws {
        guard geteuid() == 0 else { return }
        try await TemporaryFolder.with { folder in
            for name in ["grants.db", "new", "other"] {
                try DatabaseFile.create(folder.path(name), unlessExists: false)
            }
            chown(folder.path("grants.db"), 12_345, 12_345)
            try Data("of root".utf8).write(to: URL(fileURLWithPath: folder.path("full")))
            link(folder.path("other"), folder.path("hard"))
            symlink(folder.path("other"), folder.path("soft"))
            for name in ["new", "full", "hard", "soft"] {
                DatabaseFile.give(folder.path(name), toOwnerOf: folder.path("grants.db"))
            }
            for (name, owner) in [("new", 12_345), ("full", 0), ("other", 0)] as [(String, UInt32)] {
                #expect(FileIdentity(path: folder.path(name))?.owner == owner, "\(name)")
            }
        }
    }

    @Test("Stored data is there after closing and opening again")
    func reopening() async throws {
        try await TemporaryFolder.with { folder in
            let grant = try Sample.grant(1)
            let store = try open(folder.path("grants.db"))
            try await store.add([grant])
            await store.close()
            let again = try open(folder.path("grants.db"))
            #expect(try await again.grant(grant.id) == grant)
            await again.close()
        }
    }

    @Test(
        "A path that SQLite would read as something else is a plain file",
        arguments: [":memory:", "file:x?mode=memory"]
    )
    func oddNames(name: String) async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder.path(name))
            try await store.add([try Sample.grant(1)])
            await store.close()
            #expect(try folder.names() == [name, "\(name)-leases-boot"])
        }
    }

    @Test("A missing folder, a folder as the file and an empty path cannot be opened")
    func wrongPaths() async throws {
        try await TemporaryFolder.with { folder async throws in
            #expect(try refusal(of: folder.path("missing/grants.db")).code == .cannotOpen)
            #expect(try refusal(of: folder.root).code == .cannotOpen)
            #expect(try refusal(of: "").code == .cannotOpen)
            #expect(try folder.names().isEmpty)
        }
    }

    @Test("A file that is not a database is called damaged, and stays as it is")
    func garbage() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let content = Data(String(repeating: "not a database. ", count: 1000).utf8)
            try content.write(to: URL(fileURLWithPath: path))
            let error = try refusal(of: path)
            #expect(error.code == .corrupt)
            #expect(error.message.contains("backup"))
            #expect(try folder.bytes(of: "grants.db") == content)
        }
    }

    @Test("A truncated database is called damaged", arguments: [0.3, 0.5, 0.9])
    func truncated(part: Double) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let store = try open(path)
            try await store.add(try Sample.grants(1...500))
            await store.close()
            let whole = try folder.bytes(of: "grants.db")
            try whole.prefix(Int(Double(whole.count) * part)).write(to: URL(fileURLWithPath: path))
            #expect(try refusal(of: path).code == .corrupt)
        }
    }

    @Test("A database of a newer version is refused, naming both versions, and stays as it is")
    func newerSchema() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            await (try open(path)).close()
            try connection(to: path).execute(SQLQuery("test", sql: "PRAGMA user_version = 99"))
            let content = try folder.bytes(of: "grants.db")
            let error = try refusal(of: path)
            #expect(error.code == .newerSchema)
            #expect(error.message.contains("99"))
            #expect(error.message.contains("up to \(SchemaStep.all.count)"))
            #expect(error.message.contains("Upgrade refresh-worker"))
            #expect(error.message.contains("or a development build from before the first release"))
            #expect(try folder.bytes(of: "grants.db") == content)
        }
    }

    @Test(
        "Another program's database is refused, and stays as it is",
        arguments: [
            "CREATE TABLE theirs (x)", "PRAGMA user_version = 1", "PRAGMA application_id = 7; CREATE TABLE t (x)",
        ]
    )
    func otherProgram(statements: String) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            try connection(to: path).execute(SQLQuery("test", sql: statements))
            let content = try folder.bytes(of: "grants.db")
            let error = try refusal(of: path)
            #expect(error.code == .cannotOpen)
            #expect(error.message.contains("another program's"))
            #expect(try folder.bytes(of: "grants.db") == content)
        }
    }

    @Test(
        "A file or folder without write permission is read-only, and the error says so",
        arguments: ["file", "folder"]
    )
    func readOnly(what: String) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            await (try open(path)).close()
            // In a process of its own, which gives up root's right to write everywhere.
            await #expect(processExitsWith: .success) {
                [path = path as String, root = folder.root as String, what = what as String] in
                let nobody: uid_t = 65_534
                let changesOwner = geteuid() == 0
                if changesOwner {
                    #expect(chown(path, nobody, nobody) == 0)
                    #expect(chown(root, nobody, nobody) == 0)
                }
                #expect(chmod(what == "file" ? path : root, what == "file" ? 0o400 : 0o500) == 0)
                if changesOwner { #expect(setuid(nobody) == 0) }
                let error = #expect(throws: StoreError.self) {
                    _ = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
                }
                #expect(error?.code == .readOnly)
                #expect(error?.message.contains(path) == true)
            }
            chmod(folder.root, 0o700)
        }
    }

    @Test("Many instances that open a new file at once all succeed")
    func freshFileByInstances() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let stores = try await withThrowingTaskGroup(of: SQLiteStore.self) { group in
                for _ in 0..<8 {
                    group.addTask { try open(path) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for (number, store) in stores.enumerated() {
                try await store.add([try Sample.grant(Int64(number))])
            }
            #expect(try await stores[0].grants(after: nil, in: nil, atMost: 100).count == 8)
            for store in stores { await store.close() }
        }
    }

    @Test("Two processes that open a new file at once both succeed")
    func freshFileByProcesses() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            async let first: Void = openInAnotherProcess(path, adding: 1)
            async let second: Void = openInAnotherProcess(path, adding: 2)
            _ = await (first, second)
            let store = try open(path)
            #expect(try await store.grants(after: nil, in: nil, atMost: 10).map(\.id.rawValue) == [1, 2])
            await store.close()
        }
    }

    private func openInAnotherProcess(_ path: String, adding number: Int64) async {
        await #expect(processExitsWith: .success) { [path, number] in
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            try await store.add([try Sample.grant(number)])
            await store.close()
        }
    }

    @Test("A file with two names is refused under both, because each name has a log of its own")
    func hardLink() async throws {
        try await TemporaryFolder.with { folder in
            let paths = [folder.path("grants.db"), folder.path("second.db")]
            await (try SQLiteStore(path: paths[0], timeSource: ManualTime(), bootID: "boot")).close()
            #expect(link(paths[0], paths[1]) == 0)
            for path in paths {
                let error = #expect(throws: StoreError.self) {
                    _ = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
                }
                #expect(error?.code == .cannotOpen)
                #expect(error?.message.contains("hard links") == true)
            }
            #expect(unlink(paths[1]) == 0)
            await (try SQLiteStore(path: paths[0], timeSource: ManualTime(), bootID: "boot")).close()
        }
    }

    @Test("A file that another process uses under another name is refused until that process has ended")
    func otherName() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            await (try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")).close()
            // Another open file stands for another process: F_OFD_SETLK, and a byte for one name of 2^48.
            let descriptor = Glibc.open(path, O_RDONLY)
            var lock = flock()
            lock.l_type = Int16(F_RDLCK)
            lock.l_start = 1 << 56
            lock.l_len = 1
            #expect(fcntl(descriptor, 37, &lock) == 0)
            let error = #expect(throws: StoreError.self) {
                _ = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            }
            #expect(error?.code == .inUse)
            #expect(error?.message.contains("under another name") == true)
            Glibc.close(descriptor)
            await (try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")).close()
        }
    }
}
