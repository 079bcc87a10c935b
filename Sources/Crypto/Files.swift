import Base
private import Glibc

/// An open file, closed when its owner is destroyed.
///
/// Errors of `close` are ignored: written data has already been synced by ``synchronize()``.
struct OpenFile: ~Copyable {
    let descriptor: Int32

    init(path: String, flags: Int32, mode: UInt32 = 0) throws(SystemCallError) {
        descriptor = try systemCall("open") { unsafe open(path, flags | O_CLOEXEC, mode) }
    }

    deinit {
        close(descriptor)
    }

    func status() throws(SystemCallError) -> FileIdentity {
        guard let status = FileIdentity(descriptor: descriptor) else {
            throw SystemCallError(call: "fstat", code: errno)
        }
        return status
    }

    /// Waits until no other open file holds the lock on the same file.
    ///
    /// Closing the descriptor releases the lock.
    func lock() throws(SystemCallError) {
        try systemCall("flock") { flock(descriptor, LOCK_EX) }
    }

    func setPermissions(_ permissions: UInt32) throws(SystemCallError) {
        try systemCall("fchmod") { fchmod(descriptor, permissions) }
    }

    /// Reads the whole content, and returns `nil` if it is longer than the limit.
    func read(limit: Int) throws(SystemCallError) -> Secret? {
        try Self.read(descriptor: descriptor, limit: limit)
    }

    /// Reads a descriptor that the caller owns to its end, and returns `nil` if the content is longer than the limit.
    static func read(descriptor: Int32, limit: Int) throws(SystemCallError) -> Secret? {
        // One byte beyond the limit distinguishes content that fills it from content that continues.
        let whole = try Secret(capacity: limit + 1) { (buffer) throws(SystemCallError) in
            var filled = 0
            while filled < buffer.byteCount {
                let count = try unsafe buffer.withUnsafeMutableBytes { (bytes) throws(SystemCallError) in
                    let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[filled...])
                    return try systemCall("read") { unsafe Glibc.read(descriptor, rest.baseAddress, rest.count) }
                }
                guard count > 0 else { break }
                filled += count
            }
            return filled
        }
        return whole.count > limit ? nil : whole
    }

    func write(_ secret: Secret) throws(SystemCallError) {
        try secret.withBytes { (span) throws(SystemCallError) in
            try unsafe span.withUnsafeBytes { (bytes) throws(SystemCallError) in
                var rest = unsafe bytes[...]
                while unsafe !rest.isEmpty {
                    let written = try systemCall("write") {
                        unsafe Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                    }
                    unsafe rest = unsafe rest.dropFirst(written)
                }
            }
        }
    }

    /// Syncs the file's content, or the folder's entries, to the disk.
    func synchronize() throws(SystemCallError) {
        try systemCall("fsync") { fsync(descriptor) }
    }
}

/// Writes files atomically: a file appears complete or not at all, even if the machine stops in between.
///
/// The content is written to a temporary file next to the target and synced to disk. The temporary file then gets the
/// target's name.
extension OpenFile {
    /// Creates a file, and fails with `EEXIST` if it exists already.
    static func create(path: String, content: Secret, temporary: String) throws(SystemCallError) {
        try write(content, to: temporary, permissions: 0o600) { () throws(SystemCallError) in
            try Folder.publish(temporary, as: path)
        }
    }

    /// Replaces the content of a file.
    ///
    /// The caller holds the file's lock, so an existing temporary file was left behind by a crash.
    static func replace(path: String, content: Secret, permissions: UInt32) throws(SystemCallError) {
        let temporary = path + ".new"
        do throws(SystemCallError) {
            try systemCall("unlink") { unsafe unlink(temporary) }
        } catch {
            guard error.code == ENOENT else { throw error }
        }
        try write(content, to: temporary, permissions: permissions) { () throws(SystemCallError) in
            try systemCall("rename") { unsafe rename(temporary, path) }
        }
        try Folder.synchronize(of: path)
    }

    /// Resolves every symbolic link in the path.
    static func resolve(_ path: String) throws(SystemCallError) -> String {
        guard let resolved = unsafe realpath(path, nil) else {
            throw SystemCallError(call: "realpath", code: errno)
        }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    private static func write(
        _ content: Secret,
        to temporary: String,
        permissions: UInt32,
        publish: () throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        let file = try OpenFile(path: temporary, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        do throws(SystemCallError) {
            try file.setPermissions(permissions)
            try file.write(content)
            try file.synchronize()
            try publish()
        } catch {
            // The first failure is reported, even if the removal fails too.
            unsafe unlink(temporary)
            throw error
        }
    }
}

/// Runs a system call, turns `-1` into an error with `errno`, and retries after `EINTR`.
@discardableResult
func systemCall<Result: SignedInteger>(_ name: String, _ body: () -> Result) throws(SystemCallError) -> Result {
    while true {
        let result = body()
        guard result == -1 else { return result }
        let code = errno
        guard code == EINTR else { throw SystemCallError(call: name, code: code) }
    }
}
