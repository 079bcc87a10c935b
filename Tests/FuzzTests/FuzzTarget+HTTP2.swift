import Base
import Crypto

@testable import HTTPClient

/// Bytes of an HTTP/2 server, read by a session without sockets.
extension FuzzTarget {
    static let http2: [FuzzTarget] = [FuzzTarget(name: "http2_session", run: readHTTP2)]

    private static let configuration = {
        var configuration = HTTPClient.Configuration()
        configuration.maximumHeaderBytes = 512
        configuration.maximumBodyBytes = 256
        return configuration
    }()
    private static let pattern = RequestPattern(
        method: .post,
        endpoint: made { () throws(FormatError) in try Endpoint("https://a/token") },
        headers: []
    )

    /// The first byte of the input is the size of the pieces in which the rest arrives.
    private static func readHTTP2(_ input: [UInt8]) {
        guard let pieceLength = input.first.map({ Int($0) + 1 }) else { return }
        let userAgent = HTTP2Fields([("user-agent", "a")], isSecret: false)
        let session = made { () throws(HTTPError) in try HTTP2Session(configuration, userAgent: userAgent) }
        let transfers = (0..<4).map { number in
            let body = HTTPBody(Array(repeating: UInt8(ascii: "b"), count: number * 100_000))
            let transfer = HTTPTransfer(HTTPRequest(pattern, body: body)) { _ in }
            let start = BootInstant(milliseconds: 0)
            transfer.prepare(at: start, deadline: start, configuration: configuration)
            transfer.number = UInt64(number)
            return transfer
        }
        var ended: Set<UInt64> = []
        do throws(HTTPError) {
            for transfer in transfers { try session.submit(transfer) }
            try drain(session)
            try session.cancel(transfers[3])
            for start in stride(from: 1, to: input.count, by: pieceLength) {
                let piece = Array(input[start..<min(start + pieceLength, input.count)])
                let result = piece.withUnsafeBytes { bytes -> Result<Void, HTTPError> in
                    Result { () throws(HTTPError) in try session.receive(bytes.bytes) }
                }
                try result.get()
                try drain(session)
                check(session.takeEnded(), &ended)
            }
        } catch {
            require(!error.message.isEmpty, "an error has a text")
        }
        check(session.takeEnded(), &ended)
        require(session.unfinished.count + ended.count <= transfers.count, "an ended stream is not unfinished")
    }

    /// Takes all output, which has an end: a server cannot make the session write forever.
    private static func drain(_ session: HTTP2Session) throws(HTTPError) {
        var count = 0
        try session.send { bytes in
            count += bytes.byteCount
            require(count < 4_000_000, "the output of one piece of input is bounded")
            return bytes.byteCount
        }
    }

    private static func check(_ transfers: [HTTPTransfer], _ ended: inout Set<UInt64>) {
        for transfer in transfers {
            require(ended.insert(transfer.number).inserted, "a stream ends once")
            require(transfer.stream.end != nil, "an ended stream has a reason")
            let response: HTTPResponse?
            switch transfer.resultOfStream() {
            case .success(let whole):
                response = whole
                require(transfer.stream.end == .complete, "only a complete stream has a response")
            case .failure(let failure):
                response = failure.partialResponse
                require(transfer.stream.end != .complete, "a complete stream has a response")
                require(transfer.stream.end != .cancelled || failure.kind != .receiveFailed, "an end has its reason")
            }
            guard let response else { continue }
            require((200...999).contains(response.status), "a response has a status")
            require(response.head.count <= configuration.maximumHeaderBytes, "headers are within their limit")
            require(response.body.count <= configuration.maximumBodyBytes, "a body is within its limit")
        }
    }
}
