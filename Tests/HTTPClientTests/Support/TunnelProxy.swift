import Foundation
import Glibc
import Synchronization
import TestSupport

/// An HTTP proxy on 127.0.0.1 that answers CONNECT, and takes every host for this machine.
final class TunnelProxy: Sendable {
    let port: Int
    private let listener: Int32
    private let seen = Mutex<[String]>([])

    init() throws {
        (listener, port) = try ScriptedServer.listen()
        Thread.detachNewThread { [self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                Thread.detachNewThread { [self] in tunnel(client) }
            }
        }
    }

    /// The hosts and ports that clients asked for.
    var targets: [String] { seen.withLock { $0 } }

    private func tunnel(_ client: Int32) {
        var head = ""
        var byte: UInt8 = 0
        while !head.hasSuffix("\r\n\r\n"), recv(client, &byte, 1, 0) == 1 {
            head.unicodeScalars.append(UnicodeScalar(byte))
        }
        let words = head.split(separator: " ")
        guard words.first == "CONNECT", words.count > 1,
            let port = words[1].split(separator: ":").last.flatMap({ UInt16($0) })
        else { return }
        seen.withLock { $0.append(String(words[1])) }
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { return }
        let answer = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
        send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
        Thread.detachNewThread { Self.copy(from: server, to: client) }
        Self.copy(from: client, to: server)
    }

    private static func copy(from source: Int32, to target: Int32) {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = recv(source, &chunk, chunk.count, 0)
            guard count > 0, send(target, chunk, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(target, Int32(SHUT_WR))
    }
}
