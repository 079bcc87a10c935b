import Base
import Glibc
import Synchronization

/// An open spill file or reserve, locked by its descriptor for as long as it is open.
final class SpillFile: Sendable {
    private let descriptor: Int32
    private let name: Mutex<String>

    private init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        name = Mutex(path)
    }

    var path: String { name.withLock { $0 } }

    deinit {
        close(descriptor)
    }

    /// Creates a file that only this user can read, and fails if it exists.
    ///
    /// Root's file belongs to the owner of the folder, because a worker that cannot read results does not start.
    static func create(_ path: String) throws(SystemCallError) -> SpillFile {
        let file = try open(path, flags: O_RDWR | O_CREAT | O_EXCL)
        var folder = stat()
        if geteuid() == 0, unsafe stat(path.parentFolder, &folder) == 0 {
            // Within a container root might not be allowed to.
            _ = fchown(file.descriptor, folder.st_uid, folder.st_gid)
        }
        return file
    }

    /// Opens a file, and returns `nil` if it does not exist.
    static func openIfThere(_ path: String, forReading: Bool = false) throws(SystemCallError) -> SpillFile? {
        do throws(SystemCallError) {
            return try open(path, flags: forReading ? O_RDONLY : O_RDWR)
        } catch {
            guard error.code == ENOENT else { throw error }
            return nil
        }
    }

    private static func open(_ path: String, flags: Int32) throws(SystemCallError) -> SpillFile {
        let flags = flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let descriptor = unsafe Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw SystemCallError(call: "open of \(path)", code: errno) }
        let file = SpillFile(descriptor: descriptor, path: path)
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0 else { throw file.failure("fstat") }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw SystemCallError(call: "open of \(path), which is not a regular file,", code: EINVAL)
        }
        return file
    }

    /// Locks the file unless another open file has locked it.
    func tryLock() throws(SystemCallError) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw failure("flock") }
        return false
    }

    /// `true` if the path still leads to this file.
    var isInPlace: Bool {
        var own = stat()
        var there = stat()
        guard unsafe fstat(descriptor, &own) == 0, unsafe lstat(path, &there) == 0 else { return false }
        return own.st_dev == there.st_dev && own.st_ino == there.st_ino
    }

    var size: Int {
        get throws(SystemCallError) {
            var facts = stat()
            guard unsafe fstat(descriptor, &facts) == 0 else { throw failure("fstat") }
            return Int(facts.st_size)
        }
    }

    /// Allocates disk space for the file up to a size and keeps its content.
    func allocate(_ size: Int) throws(SystemCallError) {
        let code = posix_fallocate(descriptor, 0, off_t(size))
        guard code == 0 else {
            throw SystemCallError(call: "posix_fallocate of \(path)", code: code)
        }
    }

    func truncate(to size: Int) throws(SystemCallError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw failure("ftruncate") }
    }

    /// Writes at an offset, and returns once the bytes are on the disk.
    func write(_ bytes: [UInt8], at offset: Int) throws(SystemCallError) {
        var done = 0
        while done < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe pwrite(
                    descriptor,
                    buffer.baseAddress?.advanced(by: done),
                    buffer.count - done,
                    off_t(offset + done)
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("write") }
            done += count
        }
        guard fsync(descriptor) == 0 else { throw failure("fsync") }
    }

    /// Returns the whole content, or `nil` if it is longer than the limit.
    func read(limit: Int) throws(SystemCallError) -> [UInt8]? {
        let size = try size
        guard size <= limit else { return nil }
        var content = [UInt8](repeating: 0, count: size)
        var done = 0
        while done < size {
            let count = unsafe content.withUnsafeMutableBytes { buffer in
                unsafe pread(descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done, off_t(done))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("read") }
            guard count > 0 else { break }
            done += count
        }
        return Array(content.prefix(done))
    }

    private func failure(_ call: String) -> SystemCallError {
        SystemCallError(call: "\(call) of \(path)", code: errno)
    }

    /// Renames the file within its folder, durably.
    ///
    /// It can be called again after a failure: a new name whose folder could not be synchronized is not durable yet.
    func rename(to target: String) throws(SystemCallError) {
        guard unsafe Glibc.rename(path, target) == 0 else { throw failure("rename") }
        name.withLock { $0 = target }
        try Folder.synchronize(of: target)
    }

    // MARK: Names

    /// Renames a file within its folder, durably, and returns `false` if the file does not exist.
    static func rename(_ path: String, to target: String) throws(SystemCallError) -> Bool {
        guard unsafe Glibc.rename(path, target) == 0 else {
            guard errno == ENOENT else {
                throw SystemCallError(call: "rename of \(path)", code: errno)
            }
            return false
        }
        try Folder.synchronize(of: target)
        return true
    }

    static func remove(_ path: String) throws(SystemCallError) {
        guard unsafe unlink(path) == 0 || errno == ENOENT else {
            throw SystemCallError(call: "unlink of \(path)", code: errno)
        }
        try Folder.synchronize(of: path)
    }
}
