import Foundation
import Glibc
import TestSupport

/// A server on a unix socket that answers each connection with the same text, or never.
final class UnixServer: Sendable {
    private struct State: Sendable {
        var requests: [String] = []
        var closed = 0
    }

    let path: String
    private let listener: Int32
    private let text: String?
    private let state = AwaitedState(State())

    init(sending text: String?, backlog: Int32 = 64) throws {
        path = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString.prefix(8)).sock").path
        self.text = text
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard isBound, listen(listener, backlog) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        Thread.detachNewThread { [listener, state, text] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread { Self.serve(connection, sending: text, state: state) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        unlink(path)
    }

    var requestCount: Int { state.value.requests.count }

    /// Returns a request, by its number from one, once it has come.
    func request(_ number: Int) async -> String {
        await state.wait { $0.requests.count >= number }
        return state.value.requests[number - 1]
    }

    func waitForClosedConnections(_ count: Int) async { await state.wait { $0.closed >= count } }

    private static func serve(_ connection: Int32, sending text: String?, state: AwaitedState<State>) {
        defer { close(connection) }
        guard let request = readRequest(connection) else { return }
        state.change { $0.requests.append(request) }
        guard let text else {
            var byte: UInt8 = 0
            while recv(connection, &byte, 1, 0) > 0 {}
            state.change { $0.closed += 1 }
            return
        }
        let bytes = Array(text.utf8)
        _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    private static func readRequest(_ connection: Int32) -> String? {
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { return nil }
            received += chunk[..<count]
            if isComplete(received) { return String(decoding: received, as: UTF8.self) }
        }
    }

    private static func isComplete(_ received: [UInt8]) -> Bool {
        let head = String(decoding: received.prefix(4096), as: UTF8.self)
        guard let end = head.range(of: "\r\n\r\n") else { return false }
        let headLength = head[..<end.upperBound].utf8.count
        let prefix = "Content-Length: "
        let line = head[..<end.lowerBound].components(separatedBy: "\r\n").first { $0.hasPrefix(prefix) }
        guard let line, let length = Int(line.dropFirst(prefix.count)) else { return true }
        return received.count >= headLength + length
    }
}
