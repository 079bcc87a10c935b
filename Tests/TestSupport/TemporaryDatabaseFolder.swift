import Foundation
import Glibc

/// A folder that is removed with the object, in memory if the machine has room there: on a disk, a database waits at
/// each commit.
package final class TemporaryDatabaseFolder: Sendable {
    package let path: String

    /// The file system in memory of most machines.
    ///
    /// That of a container often has room for 64 MB only.
    private static let fileSystem: String = {
        let memory = "/dev/shm"
        let free = try? FileManager.default.attributesOfFileSystem(forPath: memory)[.systemFreeSize] as? Int
        guard (free ?? 0) > 1 << 30, FileManager.default.isWritableFile(atPath: memory) else {
            return FileManager.default.temporaryDirectory.path
        }
        return memory
    }()

    /// The folder of this process, removed at its end with those whose objects are still in use.
    package static let root: String = {
        atexit { try? FileManager.default.removeItem(atPath: TemporaryDatabaseFolder.root) }
        return "\(fileSystem)/refresh-worker-tests-\(getpid())"
    }()

    package init() throws {
        path = "\(Self.root)/\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            print("the test's folder \(path) stays: \(error)")
        }
    }
}
