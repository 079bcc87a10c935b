import Glibc

/// An IPv4 or IPv6 address that compares equal however it was written.
///
/// An IPv4 address equals its IPv6-mapped form (::ffff:192.0.2.1,
/// https://www.rfc-editor.org/rfc/rfc4291#section-2.5.5.2), because a socket that listens on both families reports the
/// one as the other.
struct NetworkAddress: Hashable, Sendable {
    private static let mapped: UInt128 = 0xffff << 32

    /// The 128 bits of the address. An IPv4 address is in its mapped form.
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
