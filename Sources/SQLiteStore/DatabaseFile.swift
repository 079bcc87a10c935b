private import Glibc
import Store

/// What has to hold of the database file before SQLite is let near it, so that a mistake is told in words.
enum DatabaseFile {
    /// Makes an empty file that only its owner can read, where there is none; SQLite gives its log the same mode.
    static func prepare(_ path: String) throws(StoreError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(.cannotOpen, "The database has no usable path: name a file.")
        }
        let folder = folder(of: path)
        guard let folderKind = kind(of: folder) else { throw failure("its folder \(folder)", of: path, errno) }
        guard folderKind == S_IFDIR else { throw failure("its folder \(folder)", of: path, ENOTDIR) }
        try create(path, unlessThere: true)
        guard let fileKind = kind(of: path) else { throw failure("the file", of: path, errno) }
        guard fileKind == S_IFREG else {
            throw StoreError(.cannotOpen, "The database \(path) is a folder or a device: name a file.")
        }
        try requireWriting(folder, "its folder \(folder), where SQLite keeps its log,", of: path)
        try requireWriting(path, "the file", of: path)
    }

    /// Makes an empty file of mode 0600.
    ///
    /// By `mknod`, not by `open`: to close a descriptor of a database file would drop the locks that another connection of
    /// this process has on it (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
    static func create(_ path: String, unlessThere mayBeThere: Bool) throws(StoreError) {
        guard unsafe mknod(path, S_IFREG | 0o600, 0) != 0 else { return }
        let code = errno
        guard mayBeThere, code == EEXIST || kind(of: path) != nil else { throw failure("the file", of: path, code) }
    }

    static func exists(_ path: String) -> Bool {
        kind(of: path) != nil
    }

    static func remove(_ path: String) {
        // Called for leftovers of something that failed already: that failure is the one to report.
        _ = unsafe unlink(path)
    }

    /// Makes a whole file and its name durable under `path`, which must not exist.
    static func publish(_ temporary: String, as path: String) throws(StoreError) {
        try synchronize(temporary, flags: O_RDONLY)
        // A hard link, because a rename would replace a file that has appeared meanwhile.
        if unsafe link(temporary, path) == 0 {
            remove(temporary)
        } else {
            let code = errno
            let lacksLinks = code == EPERM || code == EOPNOTSUPP || code == ENOSYS
            guard lacksLinks, !exists(path) else { throw failure("the file", of: path, code) }
            guard unsafe rename(temporary, path) == 0 else { throw failure("the file", of: path, errno) }
        }
        try synchronize(folder(of: path), flags: O_RDONLY | O_DIRECTORY)
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func kind(of path: String) -> mode_t? {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else { return nil }
        return facts.st_mode & S_IFMT
    }

    private static func requireWriting(_ target: String, _ what: String, of path: String) throws(StoreError) {
        guard unsafe access(target, R_OK | W_OK) != 0 else { return }
        throw failure(what, of: path, errno)
    }

    private static func synchronize(_ path: String, flags: Int32) throws(StoreError) {
        let descriptor = unsafe open(path, flags | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("the file", of: path, errno) }
        let code = fsync(descriptor) == 0 ? 0 : errno
        close(descriptor)
        guard code == 0 else { throw failure("the file", of: path, code) }
    }

    private static func failure(_ what: String, of path: String, _ code: Int32) -> StoreError {
        let cause = unsafe String(cString: strerror(code))
        let remedy = "See that the path is right and that the worker's user may read and write there."
        let message = "The database \(path) cannot be used: \(what) gives \"\(cause)\". \(remedy)"
        return switch code {
        case EACCES, EROFS, EPERM: StoreError(.readOnly, message)
        case ENOSPC, EDQUOT: StoreError(.diskFull, message)
        case EIO: StoreError(.input, message)
        default: StoreError(.cannotOpen, message)
        }
    }
}
