import Base
private import CSQLite
private import Glibc
private import Synchronization

/// Checks of the database file before SQLite opens it, so that a mistake gets a clear message.
package enum DatabaseFile {
    /// The endings of the files that SQLite keeps beside a database: its log, the log's index, and the journal.
    package static let companionEndings = ["-wal", "-shm", "-journal"]

    /// Creates an empty file that only its owner can read, unless it exists. SQLite gives its log the same mode.
    static func prepare(_ path: String) throws(StoreError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(.cannotOpen, "The database has no usable path: name a file.")
        }
        let folder = path.parentFolder
        guard let folderKind = kind(of: folder) else { throw failure("its folder \(folder)", of: path, code: errno) }
        guard folderKind == S_IFDIR else { throw failure("its folder \(folder)", of: path, code: ENOTDIR) }
        try create(path, unlessExists: true)
        guard let fileKind = kind(of: path) else { throw failure("the file", of: path, code: errno) }
        guard fileKind == S_IFREG else {
            throw StoreError(.cannotOpen, "The database \(path) is a folder or a device: name a file.")
        }
        try requireWriting(to: folder, named: "its folder \(folder), where SQLite keeps its log,", of: path)
        try requireWriting(to: path, named: "the file", of: path)
    }

    /// Creates an empty file of mode 0600.
    ///
    /// With `mknod` instead of `open`: closing a descriptor of a database file would drop the locks that another
    /// connection of this process has on it
    /// (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
    static func create(_ path: String, unlessExists mayExist: Bool) throws(StoreError) {
        guard unsafe mknod(path, S_IFREG | 0o600, 0) != 0 else { return }
        let code = errno
        guard mayExist, code == EEXIST || kind(of: path) != nil else { throw failure("the file", of: path, code: code) }
    }

    /// Refuses to open a database as root if SQLite would give another file to the owner of the database.
    ///
    /// A process of root gives the log, its index and the journal to that owner
    /// (https://github.com/sqlite/sqlite/blob/version-3.40.1/src/os_unix.c, `robustFchown`). The owner of the folder
    /// can put a link to a file of root in their place.
    static func refuseLinksAsRoot(beside database: String) throws(StoreError) {
        guard geteuid() == 0 else { return }
        let database = resolved(database)
        for path in companionEndings.map({ database + $0 }) {
            var facts = stat()
            guard unsafe lstat(path, &facts) == 0 else { continue }
            guard facts.st_mode & S_IFMT == S_IFREG, facts.st_nlink == 1 else {
                throw StoreError(
                    .cannotOpen,
                    "The file \(path) has several names or is a link, and root would give what it leads to to the owner "
                        + "of the database. Run this as that owner, or remove \(path) if no process has the database open."
                )
            }
        }
    }

    /// Gives a new file of root to the owner of the database, as SQLite does with its log.
    ///
    /// Otherwise one command of root would lock out the worker. The owner of the folder can put a link in place of the
    /// file, or another file of root. It is left alone unless it has one name and is empty.
    static func give(_ path: String, toOwnerOf database: String) {
        var (facts, file) = (stat(), stat())
        guard geteuid() == 0, unsafe stat(database, &facts) == 0 else { return }
        // O_PATH and AT_EMPTY_PATH, which Swift does not import. Closing such a descriptor drops no locks.
        let (pathOnly, emptyPath) = (Int32(0o10_000_000), Int32(0x1000))
        let descriptor = unsafe open(path, pathOnly | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        guard unsafe fstat(descriptor, &file) == 0, file.st_mode & S_IFMT == S_IFREG, file.st_nlink == 1,
            file.st_size == 0, file.st_uid == 0
        else { return }
        // Within a container root might not be allowed to.
        _ = unsafe fchownat(descriptor, "", facts.st_uid, facts.st_gid, emptyPath)
    }

    /// Returns the identity of the file at a path, or `nil` if it does not exist.
    static func identity(of path: String) throws(StoreError) -> FileIdentity? {
        if let identity = FileIdentity(path: path) { return identity }
        guard errno == ENOENT || errno == ENOTDIR else { throw failure("the file", of: path, code: errno) }
        return nil
    }

    /// Returns the number of names of a file on its file system.
    static func links(of path: String) throws(StoreError) -> Int {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else { throw failure("the file", of: path, code: errno) }
        return Int(facts.st_nlink)
    }

    /// The time that a write now would give to a file, in nanoseconds since 1970, or `nil` if the kernel does not
    /// report it.
    static var fileClock: Int64? {
        var time = timespec()
        guard unsafe clock_gettime(CLOCK_REALTIME_COARSE, &time) == 0 else { return nil }  // time: allowed
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Returns the path of the write-ahead log of a database.
    static func log(of path: String) -> String { path + "-wal" }

    /// Returns the path without symbolic links, next to which SQLite keeps its log. The file does not have to exist.
    static func resolved(_ path: String) -> String {
        let resolve = { (path: String) -> String? in
            guard let resolved = unsafe realpath(path, nil) else { return nil }
            defer { unsafe free(resolved) }
            return unsafe String(cString: resolved)
        }
        if let file = resolve(path) { return file }
        return resolve(path.parentFolder).map { $0 + "/" + path.fileName } ?? path
    }

    /// `true` if the user of this process can write to the database, its log and its shared index, as far as they
    /// exist.
    static func mayWrite(_ path: String) -> Bool {
        let path = resolved(path)
        let files = [path, log(of: path), path + "-shm"].filter(exists)
        return (files + [path.parentFolder]).allSatisfy { unsafe access($0, R_OK | W_OK) == 0 }
    }

    static func exists(_ path: String) -> Bool { kind(of: path) != nil }

    /// `true` if a process has a lock on a file that this process does not have open.
    ///
    /// A lock on the open file description is asked about, because it conflicts with every lock of any process
    /// (https://man7.org/linux/man-pages/man2/F_OFD_SETLK.2const.html).
    static func isLocked(_ path: String) -> Bool {
        let descriptor = unsafe open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return DatabaseNameLock.blocker(of: descriptor) != F_UNLCK
    }

    /// Returns the number of bytes that can still be written in a folder, or `nil` if the system does not say it.
    static func freeSpace(in folder: String) -> Int64? {
        do throws(SystemCallError) {
            return try Folder.freeSpace(in: folder)
        } catch {
            // Without the number, a full disk is noticed by the write that fails.
            return nil
        }
    }

    static func remove(_ path: String) {
        // Called to clean up after a failure, which is the error to report.
        _ = unsafe unlink(path)
    }

    static func replace(_ path: String, by temporary: String) throws(StoreError) {
        guard unsafe rename(temporary, path) == 0 else { throw failure("the file", of: path, code: errno) }
    }

    /// Makes a complete file and its name durable under `path`, which must not exist.
    static func publish(_ temporary: String, as path: String) throws(StoreError) {
        let descriptor = unsafe open(temporary, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("the file", of: temporary, code: errno) }
        let code = fsync(descriptor) == 0 ? 0 : errno
        close(descriptor)
        guard code == 0 else { throw failure("the file", of: temporary, code: code) }
        do throws(SystemCallError) {
            try Folder.publish(temporary, as: path)
        } catch {
            throw failure("the file", of: path, code: error.code)
        }
    }

    private static func kind(of path: String) -> mode_t? {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else { return nil }
        return facts.st_mode & S_IFMT
    }

    private static func requireWriting(to target: String, named what: String, of path: String) throws(StoreError) {
        guard unsafe access(target, R_OK | W_OK) != 0 else { return }
        throw failure(what, of: path, code: errno)
    }

    static func failure(_ what: String, of path: String, code: Int32) -> StoreError {
        let cause = unsafe String(cString: strerror(code))
        let remedy = "Check that the path is right and that the worker's user can read and write there."
        let message = "The database \(path) cannot be used: \(what) fails with \"\(cause)\". \(remedy)"
        return switch code {
        case EACCES: StoreError(.readOnly, "\(message)\(FileOwner.remedy(for: path))")
        case EROFS, EPERM: StoreError(.readOnly, message)
        case ENOSPC, EDQUOT: StoreError(.diskFull, message)
        case EIO, EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN:
            StoreError(
                .ioFailure,
                "The database \(path) cannot be used at the moment: \(what) fails with \"\(cause)\". Try again; if it "
                    + "fails again, check the disk, the system log and the limits of the process."
            )
        default: StoreError(.cannotOpen, message)
        }
    }
}

/// Holds a lock on a database file that excludes processes which use the file under another name.
///
/// SQLite finds the log and its index by the name. A process that uses the same file under another name, such as a hard
/// link or the file alone mounted into a container, has a log of its own. Neither process sees the commits and leases
/// of the other. So each process holds a read lock on a byte far behind the file's end, whose place stands for its
/// name, and looks for locks on other bytes.
final class DatabaseNameLock: Sendable {
    /// The descriptors of this process. Closing one drops SQLite's own locks on the file, so all stores of a file share
    /// it (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
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
            throw Self.refusal(
                of: path,
                because: "has several names, which are hard links",
                remedy: "Remove all names but this one"
            )
        }
        guard unsafe csqlite_is_mount_point(path) == 0 else {
            throw Self.refusal(
                of: path,
                because: "is mounted here as a single file",
                remedy: "Mount its folder instead"
            )
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
        _ = Self.lock(F_RDLCK, from: offset, length: 1, call: Self.set, descriptor: descriptor)
        let others = [
            (Self.firstByte, offset - Self.firstByte), (offset + 1, Self.firstByte + Self.bytes - offset - 1),
        ]
        for (start, length) in others where length > 0 {
            guard Self.blocker(of: descriptor, from: start, length: length) == F_UNLCK else {
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

    private static func refusal(of path: String, because what: String, remedy: String) -> StoreError {
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

    /// Returns the kind of lock that keeps a range from being locked, all of the file by default, or `F_UNLCK`.
    fileprivate static func blocker(of descriptor: Int32, from start: Int64 = 0, length: Int64 = 0) -> Int32 {
        lock(F_WRLCK, from: start, length: length, call: ask, descriptor: descriptor)
    }

    /// Sets or asks for a lock. Returns the kind that is in the way, or `F_UNLCK`.
    private static func lock(
        _ kind: Int32,
        from start: Int64,
        length: Int64,
        call: Int32,
        descriptor: Int32
    ) -> Int32 {
        var lock = flock()
        lock.l_type = Int16(kind)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(start)
        lock.l_len = off_t(length)
        guard unsafe fcntl(descriptor, call, &lock) == 0 else { return F_UNLCK }
        return Int32(lock.l_type)
    }
}
