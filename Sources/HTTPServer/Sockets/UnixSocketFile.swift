private import Base
private import Glibc

/// The file of a unix socket, by which clients find it.
struct UnixSocketFile: Sendable {
    private let path: String
    private let device: dev_t
    private let number: ino_t

    /// Returns `true` if the path fits: `sun_path` has 108 bytes with the closing NUL
    /// (https://man7.org/linux/man-pages/man7/unix.7.html).
    static func isUsable(path: String) -> Bool {
        (1..<108).contains(path.utf8.count) && !path.utf8.contains(0)
    }

    /// Identifies the file of the socket that has just been bound at the path.
    init?(boundAt path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        self.path = path
        device = status.st_dev
        number = status.st_ino
    }

    /// Removes the file, unless another file has replaced it.
    func remove() {
        guard let current = Self(boundAt: path), current.device == device, current.number == number else { return }
        _ = unsafe unlink(path)
    }

    /// Locks the folder until the returned descriptor is closed.
    ///
    /// A server holds the lock until it listens: before that, its socket looks as if its process had died, so another
    /// server would remove it. A folder that cannot be read or locked is used without the lock.
    static func lockFolder(of path: String) -> Int32 {
        let descriptor = unsafe open(path.parentFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        var attempts = 100
        while descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
            attempts -= 1
            // Everyone who can read the folder can lock it, and must not stop a worker with that.
            guard attempts > 0 else { break }
            SystemTime.blockThread(for: .milliseconds(10))
        }
        return descriptor
    }

    /// Removes the socket file of a process that has died, and no other file.
    static func clear(path: String) throws(HTTPServerError) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw refusal("cannot check unix:\(path)", code: errno) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw refusal("cannot listen on unix:\(path), which is not a socket", code: EEXIST)
        }
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let probe = socket(AF_UNIX, flags, 0)
        guard probe >= 0, let endpoint = SocketAddress(path: path) else {
            throw refusal("cannot check unix:\(path)", code: errno)
        }
        defer { close(probe) }
        // ECONNREFUSED means that no process listens any more, and EAGAIN that the queue of one is full. Any other
        // error means a socket whose state is unknown.
        let result = endpoint.connect(probe) || errno == EAGAIN ? EADDRINUSE : errno
        guard result == ECONNREFUSED else { throw refusal("cannot listen on unix:\(path)", code: result) }
        guard unsafe unlink(path) == 0 || errno == ENOENT else {
            throw refusal("cannot remove the stale unix:\(path)", code: errno)
        }
    }

    private static func refusal(_ message: String, code reason: Int32) -> HTTPServerError {
        HTTPServerError(code: .cannotListen, message: message, systemError: reason)
    }
}
