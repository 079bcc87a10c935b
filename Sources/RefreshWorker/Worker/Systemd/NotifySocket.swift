import Base
import Glibc

/// The address of systemd's notification socket: a path, or a name in Linux's abstract namespace written as `@name`
/// (https://man7.org/linux/man-pages/man7/unix.7.html).
final class NotifySocket: Sendable {
    /// Open from the start: without it, the watchdog would end a worker that has no free descriptor.
    private let descriptor: Int32
    /// The bytes of `sun_path`, with the leading zero of an abstract name or the closing one of a path.
    private let path: [UInt8]

    /// Returns `nil` for an address that is neither a path nor an abstract name, or is too long for a socket address.
    init?(address: String) {
        let bytes = Array(address.utf8)
        guard bytes.count > 1, !bytes.contains(0) else { return nil }
        switch bytes.first {
        case UInt8(ascii: "/"): path = bytes + [0]
        case UInt8(ascii: "@"): path = [0] + bytes.dropFirst()
        default: return nil
        }
        guard path.count <= MemoryLayout<sockaddr_un>.size - Self.pathOffset else { return nil }
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    deinit {
        close(descriptor)
    }

    private static var pathOffset: Int { MemoryLayout<sa_family_t>.size }

    func send(_ message: [UInt8]) throws(SystemCallError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
        let length = socklen_t(Self.pathOffset + path.count)
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let sent = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe sendto(descriptor, message, message.count, flags, generic, length)
            }
        }
        guard sent == message.count else { throw SystemCallError(call: "sendto", code: errno) }
    }
}
