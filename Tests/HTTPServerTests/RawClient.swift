import Dispatch
import Glibc
import Synchronization

@testable import HTTPServer

/// A client that sends exactly the given bytes over a real socket.
///
/// Its blocking calls run on its own queue, because the handlers under test need the cooperative pool. Every wait ends
/// after two minutes, so that a server that never answers fails the test instead of blocking it.
final class RawClient: Sendable {
    /// One answer as received.
    struct Answer: Equatable {
        var status: Int
        var head: String
        var body: String
    }

    struct NoConnection: Error {}

    private let descriptor: Int32
    private let queue = DispatchQueue(label: "raw-client")
    private let unread = Mutex<[UInt8]>([])
    private let isEnded = Mutex(false)

    init(port: UInt16, address: String = "127.0.0.1") throws {
        let family = address.contains(":") ? AF_INET6 : AF_INET
        descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0, Self.connect(descriptor, address, port) else { throw NoConnection() }
        var limit = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Connects to the unix socket at the path.
    init(path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var endpoint = sockaddr_un()
        endpoint.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &endpoint.sun_path) { $0.copyBytes(from: path.utf8) }
        let isConnected = withUnsafePointer(to: &endpoint) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard descriptor >= 0, isConnected else { throw NoConnection() }
        var limit = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        close(descriptor)
    }

    private static func connect(_ descriptor: Int32, _ address: String, _ port: UInt16) -> Bool {
        if address.contains(":") {
            var endpoint = sockaddr_in6()
            endpoint.sin6_family = sa_family_t(AF_INET6)
            endpoint.sin6_port = port.bigEndian
            inet_pton(AF_INET6, address, &endpoint.sin6_addr)
            return withUnsafePointer(to: &endpoint) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
                }
            }
        }
        var endpoint = sockaddr_in()
        endpoint.sin_family = sa_family_t(AF_INET)
        endpoint.sin_port = port.bigEndian
        inet_pton(AF_INET, address, &endpoint.sin_addr)
        return withUnsafePointer(to: &endpoint) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    /// Sends one packet, or the part that the server accepts before it closes the connection.
    func send(_ text: String) async { await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async {
        await blocking {
            var rest = bytes[...]
            while !rest.isEmpty {
                let sent = rest.withUnsafeBytes {
                    Glibc.send(self.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard sent > 0 else { return }
                rest = rest.dropFirst(sent)
            }
        }
    }

    /// Closes the sending side and keeps reading.
    func closeSendingSide() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Ends the connection with a reset, as after the death of the client's process.
    func reset() {
        var unspecified = sockaddr()
        unspecified.sa_family = sa_family_t(AF_UNSPEC)
        _ = Glibc.connect(descriptor, &unspecified, socklen_t(MemoryLayout<sockaddr>.size))
    }

    func hangUp() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// `true` if the server has sent no more data so far.
    var hasEnded: Bool { isEnded.withLock { $0 } }

    /// Reads the next answer; `nil` if the connection ends before it is complete.
    func answer(hasBody: Bool = true) async -> Answer? {
        await blocking { [self] in
            guard let head = take(through: Array("\r\n\r\n".utf8)) else { return nil }
            let lines = head.split(separator: "\r\n")
            guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
                return nil
            }
            let length = lines.lazy.map { $0.lowercased() }.first { $0.hasPrefix("content-length:") }
                .flatMap { Int($0.dropFirst("content-length:".count).trimmingPrefix(" ")) }
            guard hasBody, let length else { return Answer(status: status, head: head, body: "") }
            guard let body = take(count: length) else { return nil }
            return Answer(status: status, head: head, body: body)
        }
    }

    /// Reads until the server closes the connection; `nil` if it does not.
    func everything() async -> String? {
        await blocking { [self] in
            repeat { errno = 0 } while readMore()
            guard errno != EAGAIN else { return nil }
            return unread.withLock { String(decoding: $0, as: UTF8.self) }
        }
    }

    private func take(through delimiter: [UInt8]) -> String? {
        while true {
            let found: String? = unread.withLock { bytes in
                guard bytes.count >= delimiter.count else { return nil }
                for start in 0...(bytes.count - delimiter.count)
                where bytes[start..<(start + delimiter.count)].elementsEqual(delimiter) {
                    defer { bytes.removeFirst(start + delimiter.count) }
                    return String(decoding: bytes[..<start], as: UTF8.self)
                }
                return nil
            }
            if let found { return found }
            guard readMore() else { return nil }
        }
    }

    private func take(count: Int) -> String? {
        while unread.withLock({ $0.count < count }) {
            guard readMore() else { return nil }
        }
        return unread.withLock { bytes in
            defer { bytes.removeFirst(count) }
            return String(decoding: bytes.prefix(count), as: UTF8.self)
        }
    }

    private func readMore() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else {
            isEnded.withLock { $0 = true }
            return false
        }
        unread.withLock { $0 += buffer.prefix(count) }
        return true
    }

    private func blocking<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}

extension HTTPServer {
    /// The number of requests that have begun and whose response is not completely sent.
    var openRequests: Int { exchanges.count }

    /// The memory in bytes that the bodies of open requests take.
    var requestMemory: Int { memory.count }

    /// The number of clients that are connected.
    var openConnections: Int { clients.count }
}
