import Glibc

/// A socket address of any family.
struct SocketAddress {
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

    /// The address of a unix socket.
    init?(path: String) {
        guard UnixSocketFile.isUsable(path: path) else { return nil }
        storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_UNIX)
        // The path follows the family (https://man7.org/linux/man-pages/man7/unix.7.html). The remaining bytes are
        // already zero.
        let offset = MemoryLayout<sa_family_t>.size
        unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0[offset...].copyBytes(from: path.utf8) }
        length = socklen_t(offset + path.utf8.count + 1)
    }

    /// Reads the local address of a socket.
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

    var isInternet: Bool { family == AF_INET || family == AF_INET6 }

    /// The IPv4 or IPv6 address, if it is one.
    var network: NetworkAddress? {
        unsafe withUnsafeBytes(of: storage) { unsafe NetworkAddress(peer: $0.baseAddress) }
    }

    /// The port of an IPv4 or IPv6 address, which has the same offset in both structures.
    var port: UInt16 {
        unsafe withUnsafeBytes(of: storage) { bytes in
            unsafe UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
    }

    func bind(_ descriptor: Int32) -> Bool { unsafe passes(to: { unsafe Glibc.bind(descriptor, $0, length) }) }

    func connect(_ descriptor: Int32) -> Bool { unsafe passes(to: { unsafe Glibc.connect(descriptor, $0, length) }) }

    private func passes(to call: (UnsafePointer<sockaddr>) -> Int32) -> Bool {
        unsafe withUnsafePointer(to: storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe call($0) == 0 }
        }
    }
}
