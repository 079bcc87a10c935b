import Foundation
import Glibc

/// An HTTP/1.1 server on 127.0.0.1 with its own threads that answers each request from a script.
package final class ScriptedServer: Sendable {
    /// One received request.
    package struct Received: Sendable {
        /// The number of the connection, counted from one.
        package let number: Int
        package let head: String
        package let body: [UInt8]
    }

    package enum Step: Sendable {
        case send(String)
        /// Waits until the client has sent more on this connection, or has closed it.
        case awaitMore
        case call(@Sendable () -> Void)
        case close
        /// Sends nothing more until the client closes the connection.
        case hang
    }

    private struct State {
        var connections: Set<Int32> = []
        var accepted = 0
        var open = 0
        var peakRequests = 0
        var closedByClient = 0
        var received: [Received] = []
    }

    package let port: Int
    private let listener: Int32
    private let script: @Sendable (Received) -> [Step]
    private let state = AwaitedState(State())

    package init(script: @escaping @Sendable (Received) -> [Step]) throws {
        let (listener, port) = try Self.listen()
        self.listener = listener
        self.port = port
        self.script = script
        Thread.detachNewThread { [self] in acceptConnections() }
    }

    package var url: String { "http://127.0.0.1:\(port)/token" }
    package var received: [Received] { state.value.received }
    package var accepted: Int { state.value.accepted }
    /// The maximum number of requests that had arrived and were not yet answered.
    package var peakRequests: Int { state.value.peakRequests }

    package func waitForRequests(_ count: Int) async { await state.wait { $0.received.count >= count } }
    package func waitForClosedConnections(_ count: Int) async { await state.wait { $0.closedByClient >= count } }

    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        // Within the lock: a connection that is served to its end closes its socket after it.
        state.change { state in
            for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
        }
    }

    private func acceptConnections() {
        defer { close(listener) }
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { return }
            _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
            state.change { state in
                state.accepted += 1
                state.connections.insert(connection)
            }
            Thread.detachNewThread { [self] in serve(connection) }
        }
    }

    private func serve(_ connection: Int32) {
        var pending: [UInt8] = []
        serving: while let (head, body) = Self.readRequest(connection, &pending) {
            var number = 0
            state.change { state in
                number = state.received.count + 1
                state.received.append(Received(number: number, head: head, body: body))
                state.open += 1
                state.peakRequests = max(state.peakRequests, state.open)
            }
            let steps = script(Received(number: number, head: head, body: body))
            state.change { $0.open -= 1 }
            for step in steps {
                switch step {
                case .send(let text): guard Self.sendAll(connection, Array(text.utf8)) else { break serving }
                case .call(let function): function()
                case .awaitMore:
                    var byte: UInt8 = 0
                    guard !pending.isEmpty || recv(connection, &byte, 1, Int32(MSG_PEEK)) > 0 else { break serving }
                case .close: break serving
                case .hang:
                    var byte: UInt8 = 0
                    while recv(connection, &byte, 1, 0) > 0 {}
                    break serving
                }
            }
        }
        state.change { state in
            state.connections.remove(connection)
            state.closedByClient += 1
        }
        close(connection)
    }

    private static func readRequest(_ connection: Int32, _ pending: inout [UInt8]) -> (String, [UInt8])? {
        while true {
            if let end = pending.firstRange(of: Array("\r\n\r\n".utf8)) {
                let head = String(decoding: pending[..<end.upperBound], as: UTF8.self)
                let length =
                    head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst("content-length:".count).trimmingCharacters(in: .whitespaces)) } ?? 0
                if pending.count >= end.upperBound + length {
                    let body = Array(pending[end.upperBound..<(end.upperBound + length)])
                    pending.removeFirst(end.upperBound + length)
                    return (head, body)
                }
            }
            var chunk = [UInt8](repeating: 0, count: 16384)
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { return nil }
            pending += chunk[..<count]
        }
    }

    private static func sendAll(_ connection: Int32, _ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Listens on an unused port of 127.0.0.1.
    package static func listen() throws -> (descriptor: Int32, port: Int) {
        let (descriptor, port) = try bind()
        guard Glibc.listen(descriptor, 512) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return (descriptor, port)
    }

    /// Takes an unused port of 127.0.0.1, which refuses connections until somebody listens.
    static func bind() throws -> (descriptor: Int32, port: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                Glibc.bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0
            }
        }
        guard result else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Returns a port on which no process listens at the moment.
    package static func unusedPort() throws -> Int {
        let (descriptor, port) = try listen()
        close(descriptor)
        return port
    }
}

/// Makes an answer with a body and its length.
package func answer(_ body: String, status: String = "200 OK", headers: String = "") -> [ScriptedServer.Step] {
    [.send("HTTP/1.1 \(status)\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")]
}
