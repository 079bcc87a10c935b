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
        port = if let bound, bound.isInternet { bound.port } else { 0 }
    }

    /// Opens a socket, binds it and listens.
    ///
    /// Only a unix socket has a mode.
    private static func opened(
        _ endpoint: SocketAddress,
        at address: ListenAddress,
        mode: UInt32? = nil
    ) throws(HTTPServerError) -> Int32 {
        let descriptor = try bound(to: endpoint, at: address, mode: mode)
        guard listen(descriptor, SOMAXCONN) == 0 else {
            let error = refusal(address)
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Opens a socket and binds it.
    static func bound(
        to endpoint: SocketAddress,
        at address: ListenAddress,
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
            bind(descriptor, to: endpoint, at: address, mode: mode)
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
        at address: ListenAddress,
        mode: UInt32?
    ) -> Bool {
        guard let mode, case .unix(let path, mode: _) = address else { return endpoint.bind(descriptor) }
        return unsafe fchmod(descriptor, mode) == 0 && endpoint.bind(descriptor) && chmod(path, mode) == 0
    }

    static func badAddress(_ message: String) -> HTTPServerError {
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
