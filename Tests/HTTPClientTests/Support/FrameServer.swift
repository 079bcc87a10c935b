import Foundation
import Glibc
import TLSListener
import TestSupport

/// An HTTP/2 server on 127.0.0.1 whose script writes its frames, so that it can break every rule.
final class FrameServer: Sendable {
    private struct State {
        var sockets: Set<Int32> = []
        var accepted = 0
        var resumed = 0
        var closed = 0
        var requests: [FrameRequest] = []
        var resets: [Int32] = []
        var peakOpenStreams = 0
    }

    let port: Int
    private let listener: Int32
    /// Never freed: connections may outlive the test.
    private nonisolated(unsafe) let tls: OpaquePointer
    private let script: @Sendable (FrameConnection) -> Void
    private let state = AwaitedState(State())

    /// Starts the server; each connection runs the script on a thread of its own, after the settings are exchanged.
    init(
        _ authority: TestAuthority,
        certificate: String = "good",
        protocol name: String = "h2",
        script: @escaping @Sendable (FrameConnection) -> Void
    ) throws {
        let files = (authority.path("\(certificate).pem"), authority.path("\(certificate).key"))
        guard let tls = tls_listener_make(files.0, files.1, name) else {
            throw ChildProcess.Failure(message: "OpenSSL cannot use \(files.0)")
        }
        self.tls = tls
        (listener, port) = try ScriptedServer.listen()
        self.script = script
        Thread.detachNewThread { [self] in acceptConnections() }
    }

    var url: String { "https://127.0.0.1:\(port)/token" }
    /// The connections whose handshake succeeded, and those of them that resumed a session.
    var accepted: Int { state.value.accepted }
    var resumed: Int { state.value.resumed }
    /// The connections that the server has closed.
    var closed: Int { state.value.closed }
    var requests: [FrameRequest] { state.value.requests }
    /// The numbers of the streams that the client reset.
    var resets: [Int32] { state.value.resets }
    /// The maximum number of requests of one connection that had arrived and were not yet answered.
    var peakOpenStreams: Int { state.value.peakOpenStreams }

    func waitForRequests(_ count: Int) async { await state.wait { $0.requests.count >= count } }
    func waitForClosed(_ count: Int) async { await state.wait { $0.closed >= count } }
    func waitForResets(_ count: Int) async { await state.wait { $0.resets.count >= count } }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        state.change { state in for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) } }
    }

    func note(_ request: FrameRequest, openStreams: Int) {
        state.change { state in
            state.requests.append(request)
            state.peakOpenStreams = max(state.peakOpenStreams, openStreams)
        }
    }

    func note(reset stream: Int32) {
        state.change { $0.resets.append(stream) }
    }

    private func acceptConnections() {
        defer { close(listener) }
        while true {
            let socket = accept(listener, nil, nil)
            guard socket >= 0 else { return }
            _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
            state.change { $0.sockets.insert(socket) }
            Thread.detachNewThread { [self] in
                serve(socket)
                state.change { $0.sockets.remove(socket) }
            }
        }
    }

    private func serve(_ socket: Int32) {
        // A frame must not wait for the acknowledgement of the one before.
        var isOn: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        guard let peer = tls_peer_accept(tls, socket) else { return }
        defer {
            tls_peer_close(peer)
            state.change { $0.closed += 1 }
        }
        var number = 0
        state.change { state in
            state.accepted += 1
            state.resumed += Int(tls_peer_is_resumed(peer))
            number = state.accepted
        }
        script(FrameConnection(peer, socket: socket, number: number, server: self))
    }
}

/// A request as a ``FrameServer`` received it; its headers stay compressed.
struct FrameRequest: Sendable {
    let connection: Int
    let stream: Int32
    let body: String
}

/// An HTTP/2 frame (https://www.rfc-editor.org/rfc/rfc9113#section-4.1).
struct Frame: Equatable {
    enum Kind: UInt8 {
        case data = 0, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    static let endStream: UInt8 = 1
    static let acknowledgement: UInt8 = 1
    static let endHeaders: UInt8 = 4

    var kind: UInt8
    var flags: UInt8 = 0
    var stream: Int32 = 0
    var payload: [UInt8] = []

    init(_ kind: Kind, flags: UInt8 = 0, stream: Int32 = 0, _ payload: [UInt8] = []) {
        self.init(kind: kind.rawValue, flags: flags, stream: stream, payload: payload)
    }

    init(kind: UInt8, flags: UInt8, stream: Int32, payload: [UInt8]) {
        self.kind = kind
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    var bytes: [UInt8] {
        Frame.number(payload.count, bytes: 3) + [kind, flags] + Frame.number(Int(stream), bytes: 4) + payload
    }

    var isEnd: Bool { flags & Frame.endStream != 0 }

    /// Returns a number in the order of the network.
    static func number(_ value: Int, bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// Makes headers: the status, and fields that are not compressed (https://www.rfc-editor.org/rfc/rfc7541).
    static func headers(
        _ stream: Int32,
        status: Int = 200,
        _ fields: [(String, String)] = [],
        flags: UInt8 = endHeaders
    ) -> Frame {
        Frame(.headers, flags: flags, stream: stream, field(":status", "\(status)") + fields.flatMap(field))
    }

    static func field(_ name: String, _ value: String) -> [UInt8] {
        [0] + text(name) + text(value)
    }

    private static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var length: [UInt8] = [127]
        var rest = bytes.count - 127
        while rest >= 128 {
            length.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        return length + [UInt8(rest)] + bytes
    }

    static func settings(_ values: [(Int, Int)]) -> Frame {
        Frame(.settings, values.flatMap { number($0.0, bytes: 2) + number($0.1, bytes: 4) })
    }

    static func reset(_ stream: Int32, code: Int) -> Frame {
        Frame(.reset, stream: stream, number(code, bytes: 4))
    }

    static func goAway(lastStream: Int32, code: Int = 0) -> Frame {
        Frame(.goAway, number(Int(lastStream), bytes: 4) + number(code, bytes: 4))
    }

    static func windowUpdate(_ stream: Int32, _ count: Int) -> Frame {
        Frame(.windowUpdate, stream: stream, number(count, bytes: 4))
    }
}
