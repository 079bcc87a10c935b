internal import Base
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
