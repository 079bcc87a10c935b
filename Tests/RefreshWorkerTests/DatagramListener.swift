import Glibc
import Testing

/// A unix datagram socket that receives messages, in the role of systemd.
final class DatagramListener {
    /// The address in the form of `NOTIFY_SOCKET`.
    let address: String
    private let descriptor: Int32

    struct Failure: Error {
        let call: String
        let errorNumber: Int32
    }

    init(isAbstract: Bool) throws {
        let name = "refresh-worker-test-\(getpid())-\(UInt32.random(in: .min ... .max))"
        address = isAbstract ? "@" + name : "/tmp/" + name
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(call: "socket", errorNumber: errno) }
        var socketAddress = sockaddr_un()
        socketAddress.sun_family = sa_family_t(AF_UNIX)
        let path = isAbstract ? [0] + Array(name.utf8) : Array(address.utf8) + [0]
        withUnsafeMutableBytes(of: &socketAddress.sun_path) { $0.copyBytes(from: path) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let result = withUnsafePointer(to: &socketAddress) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard result == 0 else { throw Failure(call: "bind", errorNumber: errno) }
    }

    deinit {
        close(descriptor)
        if address.hasPrefix("/") {
            unlink(address)
        }
    }

    /// Returns the next datagram; it was sent before, so this does not wait.
    func receive() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count >= 0 else { throw Failure(call: "recv", errorNumber: errno) }
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}
