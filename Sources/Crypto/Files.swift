package import Base
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

extension Secret {
    /// Reads a secret from a file, without the newline that editors and `echo` add at the end.
    ///
    /// The file can be a pipe. The call then blocks until the writer closes it.
    package static func read(file path: String, limit: Int = 65536) throws(FileError) -> Secret {
        try read(from: path, limit: limit) { () throws(SystemCallError) in
            try OpenFile(path: path, flags: O_RDONLY).read(limit: limit)
        }
    }

    /// Reads a secret to the end of an open descriptor, such as standard input.
    ///
    /// The descriptor stays open.
    ///
    /// Blocks until the writer closes its end.
    package static func read(descriptor: Int32, limit: Int = 65536) throws(FileError) -> Secret {
        let source = descriptor == STDIN_FILENO ? "standard input" : "descriptor \(descriptor)"
        return try read(from: source, limit: limit) { () throws(SystemCallError) in
            try OpenFile.read(descriptor: descriptor, limit: limit)
        }
    }

    private static func read(
        from source: String,
        limit: Int,
        _ content: () throws(SystemCallError) -> Secret?
    ) throws(FileError) -> Secret {
        let whole: Secret?
        do throws(SystemCallError) {
            whole = try content()
        } catch {
            throw FileError(unreadable: source, error)
        }
        guard let whole else {
            throw FileError("\(source) is longer than the \(limit) bytes that a secret can have")
        }
        return whole.hasSuffix("\n") ? whole.dropping("\n").dropping("\r") : whole
    }

    /// Reads a whole file that only its owner can change and at most its group can read.
    package static func read(privateFile path: String, limit: Int = 65536) throws(FileError) -> Secret {
        let status: FileIdentity
        let content: Secret?
        do throws(SystemCallError) {
            // Non-blocking, because the path can be a pipe.
            let file = try OpenFile(path: path, flags: O_RDONLY | O_NONBLOCK)
            status = try file.status()
            content = status.isRegular ? try file.read(limit: limit) : nil
        } catch {
            throw FileError(unreadable: path, error)
        }
        guard status.isRegular else { throw FileError("\(path) is not a regular file") }
        guard status.permissions & 0o027 == 0 else {
            let mode = String(status.permissions, radix: 8)
            var problem = "\(path) is open to others (mode \(mode))"
            if status.owner != geteuid() { problem += " and belongs to \(FileOwner.name(ofUser: status.owner))" }
            throw FileError("\(problem): \(FileOwner.advice(toProtect: path))")
        }
        guard let content else { throw FileError("\(path) is longer than \(limit) bytes") }
        return content
    }
}

extension FileError {
    fileprivate init(unreadable source: String, _ error: SystemCallError) {
        let advice = error.code == EACCES ? FileOwner.advice(onDenied: source) : ""
        self.init("\(source) cannot be read: \(error)\(advice)", .system(error.code))
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
