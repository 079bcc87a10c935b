import Crypto
import HTTPClient

/// Bytes of an HTTP/2 server, read by a session without sockets.
extension FuzzTarget {
    static let http2: [FuzzTarget] = [FuzzTarget(name: "http2_session", run: readHTTP2)]

    private static let limits = HTTP2Limits(headerBytes: 512, bodyBytes: 256)
    private static let head = HTTP2RequestHead(
        [(":method", "POST"), (":path", "/token"), (":scheme", "https"), (":authority", "a")],
        isSecret: false,
        hasBody: true
    )

    /// The first byte of the input is the size of the pieces in which the rest arrives.
    private static func readHTTP2(_ input: [UInt8]) {
        guard let pieceLength = input.first.map({ Int($0) + 1 }) else { return }
        let session = made { () throws(HTTP2Error) in try HTTP2Session(limits: limits) }
        let streams = (0..<4).map { number in
            Array(repeating: UInt8(ascii: "b"), count: number * 100_000).withUnsafeBytes { body in
                HTTP2Stream(tag: UInt64(number), head: head, body: body.bytes, limits: limits)
            }
        }
        var ended: Set<UInt64> = []
        do throws(HTTP2Error) {
            for stream in streams { try session.submit(stream) }
            try drain(session)
            try session.cancel(streams[3])
            for start in stride(from: 1, to: input.count, by: pieceLength) {
                let piece = Array(input[start..<min(start + pieceLength, input.count)])
                let result = piece.withUnsafeBytes { bytes -> Result<Void, HTTP2Error> in
                    Result { () throws(HTTP2Error) in try session.receive(bytes.bytes) }
                }
                try result.get()
                try drain(session)
                check(session.takeEnded(), &ended)
            }
        } catch {
            require(!error.message.isEmpty, "an error has a text")
        }
        check(session.takeEnded(), &ended)
        require(session.unfinished.count + ended.count <= streams.count, "an ended stream is not unfinished")
    }

    /// Takes all output, which has an end: a server cannot make the session write forever.
    private static func drain(_ session: HTTP2Session) throws(HTTP2Error) {
        var count = 0
        let result = session.send { bytes in
            count += bytes.byteCount
            require(count < 4_000_000, "the output of one piece of input is bounded")
            return bytes.byteCount
        }
        _ = try result.get()
    }

    private static func check(_ streams: [HTTP2Stream], _ ended: inout Set<UInt64>) {
        for stream in streams {
            require(ended.insert(stream.tag).inserted, "a stream ends once")
            require(stream.end != nil && stream.end != .cancelled, "an ended stream has a reason")
            require(stream.receivedBodyBytes <= limits.bodyBytes, "a body is within its limit")
            if stream.end == .complete {
                require(stream.isHeadComplete && (200...999).contains(stream.status), "a response has a status")
            }
            let (head, body) = (HTTP2Taken(stream.takeHead()), HTTP2Taken(stream.takeBody()))
            require(head.count <= limits.headerBytes, "headers are within their limit")
            require(body.count == stream.receivedBodyBytes, "all of a body is kept")
        }
    }
}

/// The count of bytes that a stream gave away; a tuple cannot hold the bytes themselves.
private struct HTTP2Taken {
    let count: Int

    init(_ bytes: consuming ErasedBytes) {
        count = bytes.count
    }
}
