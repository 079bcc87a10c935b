private import Base
private import Glibc

/// A listening, non-blocking stream socket.
///
/// The server opens it without libmicrohttpd, so that an error such as a taken port is reported with the system's
/// reason.
struct ListeningSocket: Sendable {
    let descriptor: Int32

    /// The port of a TCP socket, else 0.
    let port: UInt16

    /// The unix socket's file, which is removed when the server ends.
    let file: UnixSocketFile?

    /// `true` if another process holds the same socket and continues to listen on it.
    let isShared: Bool

    init(_ address: ListenAddress) throws(HTTPServerError) {
        switch address {
        case .tcp(let text, let port):
            guard let endpoint = SocketAddress(address: text, port: port) else {
                throw Self.badAddress("\(text) is not a numeric IPv4 or IPv6 address")
            }
            descriptor = try Self.opened(endpoint, at: address)
            file = nil
            isShared = false
        case .unix(let path, let mode):
            guard let endpoint = SocketAddress(path: path) else {
                throw Self.badAddress("\(path) is too long for a socket")
            }
            let folder = UnixSocketFile.lockFolder(of: path)
            defer { close(folder) }
            try UnixSocketFile.clear(path: path)
            descriptor = try Self.opened(endpoint, at: address, mode: mode)
            file = UnixSocketFile(boundAt: path)
            isShared = false
        case .inherited(let inherited):
            try HTTPServer.adopt(inherited)
            descriptor = inherited
            file = nil
            isShared = true
        }
        let bound = SocketAddress(ofSocket: descriptor)
        port = bound.flatMap { $0.family == AF_INET || $0.family == AF_INET6 ? $0.port : nil } ?? 0
    }

    /// Opens a socket, binds it and listens.
    ///
    /// Only a unix socket has a mode.
    private static func opened(
        _ endpoint: SocketAddress,
        at address: ListenAddress,
        mode: UInt32? = nil
    ) throws(HTTPServerError) -> Int32 {
        let descriptor = try bound(to: endpoint, address, mode: mode)
        guard listen(descriptor, SOMAXCONN) == 0 else {
            let error = refusal(address)
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Opens a socket and binds it.
    fileprivate static func bound(
        to endpoint: SocketAddress,
        _ address: ListenAddress,
        mode: UInt32? = nil
    ) throws(HTTPServerError) -> Int32 {
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(Int32(endpoint.family), flags, 0)
        guard descriptor >= 0 else { throw refusal(address) }
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        // Without this option, a restart within a minute would find the port held by the closed connections of the last
        // run.
        guard unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, size) == 0,
            bind(descriptor, to: endpoint, address, mode: mode)
        else {
            let error = refusal(address)
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Binds the socket.
    ///
    /// Linux creates the file of a unix socket with the socket's own mode minus the process's umask, so it never has
    /// more permissions than it should. The bits that the umask removed are restored before a client can connect.
    private static func bind(
        _ descriptor: Int32,
        to endpoint: SocketAddress,
        _ address: ListenAddress,
        mode: UInt32?
    ) -> Bool {
        guard let mode, case .unix(let path, mode: _) = address else { return endpoint.bind(descriptor) }
        return unsafe fchmod(descriptor, mode) == 0 && endpoint.bind(descriptor) && chmod(path, mode) == 0
    }

    fileprivate static func badAddress(_ message: String) -> HTTPServerError {
        HTTPServerError(code: .badAddress, message: message)
    }

    private static func refusal(_ address: ListenAddress) -> HTTPServerError {
        HTTPServerError(code: .cannotListen, message: "cannot listen on \(address)", systemError: errno)
    }

    /// Ends both directions of a socket, so that its thread notices.
    ///
    /// It stands here because in a release build `SHUT_RDWR` is not found in a file that imports Dispatch.
    static func shutDown(_ descriptor: Int32) {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }
}

/// The address on which a server listens.
package enum ListenAddress: Hashable, Sendable {
    /// A numeric IPv4 or IPv6 address.
    ///
    /// Port 0 takes any free port.
    case tcp(address: String, port: UInt16)

    /// A unix socket. Its file gets the mode and is removed when the server ends.
    case unix(path: String, mode: UInt32)

    /// A socket that already listens, such as one from systemd. The server closes its descriptor at the end, and leaves
    /// the socket itself listening for the other processes that hold it.
    case inherited(descriptor: Int32)

    /// Reads "127.0.0.1:8080", "[::1]:8080" or "unix:/run/name.sock".
    package init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst("unix:".count))
            guard path.hasPrefix("/"), UnixSocketFile.isUsable(path: path) else { return nil }
            self = .unix(path: path, mode: 0o600)
            return
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.count <= 5, digits.isDecimalNumber, let port = UInt16(digits)
        else { return nil }
        var address = text[..<colon]
        if address.first == "[", address.last == "]" {
            address = address.dropFirst().dropLast()
            guard address.contains(":") else { return nil }
        } else if address.contains(":") {
            return nil
        }
        guard NetworkAddress(address) != nil else { return nil }
        self = .tcp(address: String(address), port: port)
    }
}

extension ListenAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(let address, let port): address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
        case .unix(let path, mode: _): "unix:\(path)"
        case .inherited(let descriptor): "the inherited descriptor \(descriptor)"
        }
    }
}

extension ListenAddress {
    /// Checks that a server could listen on this TCP address now, and throws the error that a server would throw.
    ///
    /// It binds the address and releases it without listening, so no client notices. Other kinds of address are not
    /// tried: a unix socket would leave a file.
    package func tryToBind() throws(HTTPServerError) {
        guard case .tcp(let address, let port) = self else { return }
        guard let endpoint = SocketAddress(address: address, port: port) else {
            throw ListeningSocket.badAddress("\(address) is not a numeric IPv4 or IPv6 address")
        }
        close(try ListeningSocket.bound(to: endpoint, self))
    }
}

extension HTTPServerError {
    /// `true` if another process already listens on the address.
    package var isAddressInUse: Bool { systemError == EADDRINUSE }
}

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
            guard errno == ENOENT else { throw refusal("cannot check unix:\(path)", errno) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw refusal("cannot listen on unix:\(path), which is not a socket", EEXIST)
        }
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let probe = socket(AF_UNIX, flags, 0)
        guard probe >= 0, let endpoint = SocketAddress(path: path) else {
            throw refusal("cannot check unix:\(path)", errno)
        }
        defer { close(probe) }
        // ECONNREFUSED means that no process listens any more, and EAGAIN that the queue of one is full. Any other error
        // means a socket whose state is unknown.
        let result = endpoint.connect(probe) || errno == EAGAIN ? EADDRINUSE : errno
        guard result == ECONNREFUSED else { throw refusal("cannot listen on unix:\(path)", result) }
        guard unsafe unlink(path) == 0 || errno == ENOENT else {
            throw refusal("cannot remove the stale unix:\(path)", errno)
        }
    }

    private static func refusal(_ message: String, _ reason: Int32) -> HTTPServerError {
        HTTPServerError(code: .cannotListen, message: message, systemError: reason)
    }
}

/// The listening sockets that systemd passes at start (https://man7.org/linux/man-pages/man3/sd_listen_fds.3.html).
extension HTTPServer {
    /// Returns the inherited sockets by the names that their units give them (`FileDescriptorName=`).
    ///
    /// The result is empty if there are none, or if the environment is meant for another process.
    package static func inheritedSockets(
        environment: [String: String],
        processID: Int32,
        first: Int32 = 3
    ) throws(HTTPServerError) -> [String: Int32] {
        let environment = environment.filter { !$0.value.isEmpty }
        guard environment["LISTEN_PID"].flatMap(Int32.init) == processID, let text = environment["LISTEN_FDS"] else {
            return [:]
        }
        guard let count = Int32(text), (0...1024).contains(count) else {
            throw refusal("LISTEN_FDS is not a number of sockets")
        }
        let names = environment["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        var sockets: [String: Int32] = [:]
        for index in 0..<count {
            let name = names.indices.contains(Int(index)) ? String(names[Int(index)]) : "unknown"
            guard sockets.updateValue(first + index, forKey: name) == nil else {
                throw refusal("two inherited sockets are named \(name): give each its own FileDescriptorName=")
            }
            try adopt(first + index)
        }
        return sockets
    }

    /// Checks that the descriptor is a listening stream socket, and sets the flags that the server needs.
    fileprivate static func adopt(_ descriptor: Int32) throws(HTTPServerError) {
        guard value(of: SO_TYPE, descriptor) == Int32(SOCK_STREAM.rawValue), value(of: SO_ACCEPTCONN, descriptor) == 1
        else {
            throw refusal("the inherited descriptor \(descriptor) is not a listening stream socket")
        }
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0,
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
        else {
            throw refusal("cannot set up the inherited descriptor \(descriptor)", errno)
        }
    }

    private static func value(of option: Int32, _ descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : nil
    }

    private static func refusal(_ message: String, _ reason: Int32 = 0) -> HTTPServerError {
        HTTPServerError(code: .badInheritedSocket, message: message, systemError: reason)
    }
}
