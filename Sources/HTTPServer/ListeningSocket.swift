private import Glibc

/// A bound, listening, non-blocking TCP socket.
///
/// The server makes it itself, not through libmicrohttpd, so that a port that is taken is reported with the system's reason.
struct ListeningSocket: ~Copyable {
    let descriptor: Int32
    let port: UInt16

    init(address: String, port: UInt16) throws(HTTPServerError) {
        guard let endpoint = Endpoint(address: address, port: port) else {
            throw HTTPServerError(
                code: .badAddress,
                message: "\(address) is no IPv4 or IPv6 address in figures",
                systemError: 0
            )
        }
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(Int32(endpoint.family), flags, 0)
        guard descriptor >= 0 else { throw Self.refusal(address, port) }

        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        // Without it a restart within a minute finds the port still held by the last run's closed connections.
        let reusing = unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, size)
        guard reusing == 0, endpoint.bind(descriptor), listen(descriptor, SOMAXCONN) == 0,
            let bound = Endpoint(ofSocket: descriptor)
        else {
            let error = Self.refusal(address, port)
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.port = bound.port
    }

    private static func refusal(_ address: String, _ port: UInt16) -> HTTPServerError {
        HTTPServerError(code: .cannotListen, message: "cannot listen on \(address) port \(port)", systemError: errno)
    }
}

/// A socket address of either family.
private struct Endpoint {
    private var storage: sockaddr_storage
    private let length: socklen_t

    init?(address: String, port: UInt16) {
        storage = sockaddr_storage()
        var internet = sockaddr_in()
        var internet6 = sockaddr_in6()
        if unsafe inet_pton(AF_INET, address, &internet.sin_addr) == 1 {
            internet.sin_family = sa_family_t(AF_INET)
            internet.sin_port = port.bigEndian
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
            unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0.storeBytes(of: internet, as: sockaddr_in.self) }
        } else if unsafe inet_pton(AF_INET6, address, &internet6.sin6_addr) == 1 {
            internet6.sin6_family = sa_family_t(AF_INET6)
            internet6.sin6_port = port.bigEndian
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0.storeBytes(of: internet6, as: sockaddr_in6.self) }
        } else {
            return nil
        }
    }

    /// The address that the system gave a socket.
    init?(ofSocket descriptor: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length)
            }
        }
        guard result == 0 else { return nil }
        self.storage = storage
        self.length = length
    }

    var family: sa_family_t { storage.ss_family }

    /// The port, which lies at the same place in both families' addresses.
    var port: UInt16 {
        unsafe withUnsafeBytes(of: storage) { bytes in
            unsafe UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
    }

    func bind(_ descriptor: Int32) -> Bool {
        unsafe withUnsafePointer(to: storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.bind(descriptor, $0, length) == 0
            }
        }
    }
}
