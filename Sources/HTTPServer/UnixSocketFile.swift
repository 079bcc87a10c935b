private import Glibc

/// The file by which clients find a unix socket.
struct UnixSocketFile: Sendable {
    private let path: String
    private let device: dev_t
    private let number: ino_t

    /// Whether the system can take the path: `sun_path` has 108 bytes with the closing NUL (https://man7.org/linux/man-pages/man7/unix.7.html).
    static func isUsable(path: String) -> Bool {
        (1..<108).contains(path.utf8.count) && !path.utf8.contains(0)
    }

    /// The file of the socket that has just been bound there.
    init?(boundAt path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        self.path = path
        device = status.st_dev
        number = status.st_ino
    }

    /// Removes the file, unless another has taken its place.
    func remove() {
        guard let there = Self(boundAt: path), there.device == device, there.number == number else { return }
        _ = unsafe unlink(path)
    }

    /// Makes way for a new socket: removes what a process that has died left behind, and nothing else.
    static func clear(path: String) throws(HTTPServerError) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw refusal("cannot look at unix:\(path)", errno) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw refusal("cannot listen on unix:\(path), which is no socket", EEXIST)
        }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0, let endpoint = Endpoint(path: path) else {
            throw refusal("cannot look at unix:\(path)", errno)
        }
        defer { close(probe) }
        // ECONNREFUSED: nobody listens there any more. Anything else is a socket in use, or one that is not ours to judge.
        let answer = endpoint.connect(probe) ? EADDRINUSE : errno
        guard answer == ECONNREFUSED else { throw refusal("cannot listen on unix:\(path)", answer) }
        guard unsafe unlink(path) == 0 || errno == ENOENT else {
            throw refusal("cannot remove the stale unix:\(path)", errno)
        }
    }

    private static func refusal(_ message: String, _ reason: Int32) -> HTTPServerError {
        HTTPServerError(code: .cannotListen, message: message, systemError: reason)
    }
}
