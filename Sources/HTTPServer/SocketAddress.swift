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

/// An IPv4 or IPv6 address that compares equal however it was written.
///
/// An IPv4 address equals its IPv6-mapped form (::ffff:192.0.2.1,
/// https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.2), because a socket that listens on both families reports the
/// one as the other.
struct NetworkAddress: Hashable, Sendable {
    private static let mapped: UInt128 = 0xffff << 32

    /// The 128 bits of the address.
    ///
    /// An IPv4 address is in its mapped form.
    let bits: UInt128

    var isIPv4: Bool { bits >> 32 == 0xffff }

    /// `true` for 127.0.0.0/8 and ::1.
    var isLoopback: Bool { isIPv4 ? (bits >> 24) & 0xff == 127 : bits == 1 }

    /// The block of addresses that counts as one address in limits: the /64 of an IPv6 address, because its holder has
    /// all of it (https://www.rfc-editor.org/rfc/rfc6177#section-2), or a single IPv4 address.
    var limitBlock: NetworkAddress { isIPv4 ? self : NetworkAddress(bits: (bits >> 64) << 64) }
}

extension NetworkAddress {
    /// Reads a numeric address without port and zone.
    init?(_ text: some StringProtocol) {
        var internet = in_addr()
        var internet6 = in6_addr()
        let text = String(text)
        guard !text.utf8.contains(0) else { return nil }
        if unsafe inet_pton(AF_INET, text, &internet) == 1 {
            bits = Self.mapped | UInt128(UInt32(bigEndian: internet.s_addr))
        } else if unsafe inet_pton(AF_INET6, text, &internet6) == 1 {
            bits = unsafe withUnsafeBytes(of: internet6) { unsafe Self.bits(of: $0) }
        } else {
            return nil
        }
    }

    /// Reads the sixteen bytes of an IPv6 address, or the four of an IPv4 address, in network byte order.
    init?(bytes: UnsafeRawBufferPointer) {
        switch bytes.count {
        case 4: bits = unsafe Self.mapped | Self.bits(of: bytes)
        case 16: bits = unsafe Self.bits(of: bytes)
        default: return nil
        }
    }

    private static func bits(of bytes: UnsafeRawBufferPointer) -> UInt128 {
        unsafe bytes.reduce(0) { ($0 << 8) | UInt128($1) }
    }
}

extension NetworkAddress: CustomStringConvertible {
    /// The numeric address in the form of RFC 5952.
    var description: String {
        var bytes: [UInt8] = (0..<16).reversed().map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) }
        if isIPv4 { bytes.removeFirst(12) }
        let family = isIPv4 ? AF_INET : AF_INET6
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let text = unsafe inet_ntop(family, bytes, buffer.baseAddress, socklen_t(INET6_ADDRSTRLEN)) else {
                return "unknown"
            }
            return unsafe String(cString: text)
        }
    }
}

/// The clients that can reach a listening socket.
package enum NetworkReach: Hashable, Sendable {
    /// Processes of this machine that can open the socket's file.
    case unixSocket
    /// Every process of this machine.
    case thisMachine
    case network
}

extension ListenAddress {
    /// The reach of a socket with this address.
    ///
    /// For an inherited socket, its own address counts.
    package var reach: NetworkReach {
        switch self {
        case .unix: .unixSocket
        case .tcp(let address, port: _): Self.reach(of: NetworkAddress(address))
        case .inherited(let descriptor):
            if let endpoint = SocketAddress(ofSocket: descriptor) {
                endpoint.family == AF_UNIX ? .unixSocket : Self.reach(of: endpoint.network)
            } else {
                .network
            }
        }
    }

    /// An unreadable address counts as reachable from the network.
    private static func reach(of address: NetworkAddress?) -> NetworkReach {
        address?.isLoopback == true ? .thisMachine : .network
    }
}
