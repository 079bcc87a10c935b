private import Base
private import CSQLite
private import Glibc
private import Synchronization

/// Holds a lock on a database file that excludes processes which use the file under another name.
///
/// SQLite finds the log and its index by the name. A process that uses the same file under another name, such as a hard
/// link or the file alone mounted into a container, has a log of its own. Neither process sees the commits and leases
/// of the other. So each process holds a read lock on a byte far behind the file's end, whose place stands for its
/// name, and looks for locks on other bytes.
final class DatabaseNameLock: Sendable {
    /// The descriptors of this process.
    ///
    /// Closing one drops SQLite's own locks on the file, so all stores of a file share it
    /// (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
    private static let descriptors = Mutex<[FileIdentity: (descriptor: Int32, users: Int)]>([:])
    private static let firstByte: Int64 = 1 << 56
    private static let bytes: Int64 = 1 << 48
    // F_OFD_GETLK and F_OFD_SETLK, which Swift does not import.
    private static let ask: Int32 = 36
    private static let set: Int32 = 37

    private let file: FileIdentity

    /// Throws if the file has several names, or is used under another one.
    init(_ path: String) throws(StoreError) {
        let path = DatabaseFile.resolved(path)
        guard try DatabaseFile.links(of: path) == 1 else {
            throw Self.refusal(of: path, "has several names, which are hard links", "Remove all names but this one")
        }
        guard unsafe csqlite_is_mount_point(path) == 0 else {
            throw Self.refusal(of: path, "is mounted here as a single file", "Mount its folder instead")
        }
        guard let file = try DatabaseFile.identity(of: path),
            let place = try DatabaseFile.identity(of: path.parentFolder)
        else {
            throw StoreError(.ioFailure, "The database \(path) was deleted just now. Try again.")
        }
        self.file = file
        let offset = Self.offset(of: "\(place.device) \(place.inode) \(path.fileName)")
        let descriptor = Self.descriptors.withLock { descriptors in
            let descriptor = descriptors[file]?.descriptor ?? Self.open(path)
            guard descriptor >= 0 else { return descriptor }
            descriptors[file] = (descriptor, (descriptors[file]?.users ?? 0) + 1)
            return descriptor
        }
        guard descriptor >= 0 else {
            throw StoreError(.ioFailure, "The database \(path) cannot be opened at the moment. Try again.")
        }
        // A file system without locks has none of SQLite either, which reports that.
        _ = Self.lock(F_RDLCK, offset, 1, Self.set, descriptor)
        let others = [
            (Self.firstByte, offset - Self.firstByte), (offset + 1, Self.firstByte + Self.bytes - offset - 1),
        ]
        for (start, length) in others where length > 0 {
            guard Self.lock(F_WRLCK, start, length, Self.ask, descriptor) == F_UNLCK else {
                throw StoreError(
                    .inUse,
                    "The database \(path) is in use under another name, such as a mount in a container. Each process "
                        + "would miss the commits of the other. `fuser \(path)` shows who has it open. Stop these "
                        + "processes, and let all use one folder and one name."
                )
            }
        }
    }

    deinit {
        Self.descriptors.withLock { descriptors in
            guard var entry = descriptors[file] else { return }
            entry.users -= 1
            descriptors[file] = entry.users > 0 ? entry : nil
            if entry.users == 0 { close(entry.descriptor) }
        }
    }

    private static func open(_ path: String) -> Int32 { unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC) }

    private static func refusal(of path: String, _ what: String, _ remedy: String) -> StoreError {
        StoreError(
            .cannotOpen,
            "The database \(path) \(what). SQLite keeps its log beside the name, so processes with different names "
                + "would overwrite each other's tokens. \(remedy), and start again."
        )
    }

    /// FNV-1a: every process must find the same place (https://www.rfc-editor.org/rfc/rfc9923).
    private static func offset(of name: String) -> Int64 {
        let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return firstByte + Int64(hash % UInt64(bytes))
    }

    /// Sets or asks for a lock.
    ///
    /// Returns the kind that is in the way, or `F_UNLCK`.
    private static func lock(_ kind: Int32, _ start: Int64, _ length: Int64, _ call: Int32, _ descriptor: Int32)
        -> Int32
    {
        var lock = flock()
        lock.l_type = Int16(kind)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(start)
        lock.l_len = off_t(length)
        guard unsafe fcntl(descriptor, call, &lock) == 0 else { return F_UNLCK }
        return Int32(lock.l_type)
    }
}
