import Glibc
import TLSListener

/// One connection of a ``FrameServer``, used by its script on one thread.
final class FrameConnection {
    /// The number of the connection, counted from one.
    let number: Int
    private let peer: OpaquePointer
    private let socket: Int32
    private let server: FrameServer
    private var pending: [UInt8] = []
    private var bodies: [Int32: [UInt8]] = [:]
    private var openStreams: Set<Int32> = []

    init(_ peer: OpaquePointer, socket: Int32, number: Int, server: FrameServer) {
        self.peer = peer
        self.socket = socket
        self.number = number
        self.server = server
    }

    /// Reads the client's preface and sends the server's settings.
    func begin(_ settings: [(Int, Int)] = []) {
        _ = read(24)
        send(.settings(settings))
    }

    /// Returns the next frame; `nil` once the client has closed the connection.
    ///
    /// Settings and pings are acknowledged.
    func nextFrame() -> Frame? {
        guard let header = read(9) else { return nil }
        let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
        let stream = header[5...8].reduce(0) { $0 << 8 | Int32($1) }
        guard let payload = read(length) else { return nil }
        let frame = Frame(kind: header[3], flags: header[4], stream: stream, payload: payload)
        switch Frame.Kind(rawValue: frame.kind) {
        case .settings where frame.flags == 0: send(Frame(.settings, flags: Frame.acknowledgement))
        case .ping where frame.flags == 0: send(Frame(.ping, flags: Frame.acknowledgement, payload))
        case .reset:
            openStreams.remove(stream)
            server.note(reset: stream)
        default: break
        }
        return frame
    }

    /// Returns the next complete request; `nil` once the client has closed the connection.
    func nextRequest() -> FrameRequest? {
        while let frame = nextFrame() {
            switch Frame.Kind(rawValue: frame.kind) {
            case .headers: openStreams.insert(frame.stream)
            case .data: bodies[frame.stream, default: []] += frame.payload
            default: continue
            }
            guard frame.isEnd else { continue }
            let body = String(decoding: bodies.removeValue(forKey: frame.stream) ?? [], as: UTF8.self)
            let request = FrameRequest(connection: number, stream: frame.stream, body: body)
            server.note(request, openStreams: openStreams.count)
            return request
        }
        return nil
    }

    /// Answers a request with its own body, or another one.
    func respond(to request: FrameRequest, _ body: String? = nil, status: Int = 200, _ fields: [(String, String)] = [])
    {
        openStreams.remove(request.stream)
        send(.headers(request.stream, status: status, fields))
        send(Frame(.data, flags: Frame.endStream, stream: request.stream, Array((body ?? request.body).utf8)))
    }

    /// Answers every further request until the client closes the connection.
    func respondToAll() {
        while let request = nextRequest() { respond(to: request) }
    }

    /// Reads until the client closes the connection.
    func hang() {
        while nextFrame() != nil {}
    }

    func send(_ frame: Frame) {
        send(frame.bytes)
    }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        bytes.isEmpty || tls_peer_write(peer, bytes, Int32(bytes.count)) == 1
    }

    /// Waits until the socket is closed, without reading.
    func waitForEnd() {
        // POLLRDHUP, which Swift does not import.
        var event = pollfd(fd: socket, events: 0x2000, revents: 0)
        _ = poll(&event, 1, -1)
    }

    /// Returns the next bytes, which are not frames; `nil` once the client has closed the connection.
    func read() -> [UInt8]? { read(1) }

    private func read(_ count: Int) -> [UInt8]? {
        while pending.count < count {
            var chunk = [UInt8](repeating: 0, count: 16_384)
            let length = tls_peer_read(peer, &chunk, Int32(chunk.count))
            guard length > 0 else { return nil }
            pending += chunk[..<Int(length)]
        }
        defer { pending.removeFirst(count) }
        return Array(pending[..<count])
    }
}
