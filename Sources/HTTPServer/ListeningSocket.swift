private import Glibc

/// A listening, non-blocking stream socket.
///
/// The server makes it itself, not through libmicrohttpd, so that a port that is taken is reported with the system's reason.
struct ListeningSocket: ~Copyable {
    let descriptor: Int32

    /// The port of a TCP socket, else 0.
    let port: UInt16

    /// The unix socket's file, which goes when the server does.
    let file: UnixSocketFile?

    /// Another process holds the same socket and goes on listening with it.
    let isShared: Bool

    init(_ address: ListenAddress) throws(HTTPServerError) {
        switch address {
        case .tcp(let figures, let port):
            guard let endpoint = Endpoint(address: figures, port: port) else {
                throw Self.badAddress("\(figures) is no IPv4 or IPv6 address in figures")
            }
            descriptor = try Self.opened(endpoint, at: address)
            file = nil
            isShared = false
        case .unix(let path, let mode):
            guard let endpoint = Endpoint(path: path) else { throw Self.badAddress("\(path) is too long for a socket") }
            try UnixSocketFile.clear(path: path)
            descriptor = try Self.opened(endpoint, at: address, mode: mode)
            file = UnixSocketFile(boundAt: path)
            isShared = false
        case .inherited(let inherited):
            try SocketActivation.adopt(inherited)
            descriptor = inherited
            file = nil
            isShared = true
        }
        let bound = Endpoint(ofSocket: descriptor)
        port = bound.flatMap { $0.family == AF_INET || $0.family == AF_INET6 ? $0.port : nil } ?? 0
    }

    /// A socket that is bound and listens; with a mode it is a unix socket's.
    private static func opened(
        _ endpoint: Endpoint,
        at address: ListenAddress,
        mode: UInt32? = nil
    ) throws(HTTPServerError) -> Int32 {
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(Int32(endpoint.family), flags, 0)
        guard descriptor >= 0 else { throw refusal(address) }
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        // Without it a restart within a minute finds the port still held by the last run's closed connections.
        guard unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, size) == 0,
            bind(descriptor, to: endpoint, address, mode: mode), listen(descriptor, SOMAXCONN) == 0
        else {
            let error = refusal(address)
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Linux makes the file of a unix socket with the socket's own mode less the process's umask, so it is never open to
    /// more than it should be; what the umask took is given back before anybody can connect.
    private static func bind(
        _ descriptor: Int32,
        to endpoint: Endpoint,
        _ address: ListenAddress,
        mode: UInt32?
    ) -> Bool {
        guard let mode, case .unix(let path, mode: _) = address else { return endpoint.bind(descriptor) }
        return unsafe fchmod(descriptor, mode) == 0 && endpoint.bind(descriptor) && chmod(path, mode) == 0
    }

    private static func badAddress(_ message: String) -> HTTPServerError {
        HTTPServerError(code: .badAddress, message: message, systemError: 0)
    }

    private static func refusal(_ address: ListenAddress) -> HTTPServerError {
        HTTPServerError(code: .cannotListen, message: "cannot listen on \(address)", systemError: errno)
    }
}
