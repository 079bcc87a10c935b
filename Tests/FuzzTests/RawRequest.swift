import Glibc

/// One connection to a server on loopback.
enum RawRequest {
    /// Sends bytes and returns the answer up to the end of the connection; `nil` if no connection was possible.
    ///
    /// The server sees the end of the bytes of a broken request, so it does not wait for the rest. The end of an answer
    /// to it is awaited for a short time only. A valid request has an answer, however late it is on a busy machine.
    static func exchange(_ bytes: [UInt8], port: UInt16, isValid: Bool) -> [UInt8]? {
        let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard connection >= 0 else { return nil }
        defer { close(connection) }
        if !isValid { limitWaiting(connection) }
        var address = loopback(port: port)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                connect(connection, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { return nil }
        sendAll(bytes, on: connection)
        if !isValid { shutdown(connection, Int32(SHUT_WR)) }
        var reply: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while reply.count < 1 << 20 {
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            reply += chunk[..<count]
        }
        return reply
    }

    static func sendAll(_ bytes: [UInt8], on connection: Int32) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

    static func limitWaiting(_ connection: Int32) {
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return address
    }
}
