internal import Base

/// One request on its way over HTTP/2: waiting for a stream, or on one.
final class HTTP2Exchange {
    let request: SubmittedRequest
    /// The fields of the request.
    let head: HTTP2RequestHead
    /// The time at which the transport got the request.
    let startedAt: BootInstant
    /// The stream that carries the request, and its connection.
    private(set) var stream: HTTP2Stream?
    private(set) var connection: HTTP2Connection?
    /// `true` once bytes of the request may have been sent.
    private(set) var isIssued = false
    /// `true` if the request is the first on its connection.
    private(set) var opensConnection = false
    /// The number of times that a server refused to process the request.
    private var refusals = 0
    private(set) var hasEnded = false

    /// The number of refusals after which the request fails.
    private static let mostRefusals = 3

    init(_ request: SubmittedRequest, head: HTTP2RequestHead, startedAt: BootInstant) {
        self.request = request
        self.head = head
        self.startedAt = startedAt
    }

    func begin(on stream: HTTP2Stream, of connection: HTTP2Connection) {
        self.stream = stream
        self.connection = connection
        isIssued = true
        opensConnection = opensConnection || connection.isUnused
    }

    func end() {
        hasEnded = true
    }

    /// Prepares the request for another stream, if the server provably did not process it; returns `false` if the
    /// request must not be sent again.
    ///
    /// A server that refuses a stream, or ends the connection before its number, has not processed the request
    /// (https://www.rfc-editor.org/rfc/rfc9113#section-8.7).
    func prepareRepeat() -> Bool {
        guard let stream, stream.isRefused, !stream.hasResponse else { return false }
        refusals += 1
        guard refusals < Self.mostRefusals else { return false }
        self.stream = nil
        connection = nil
        return true
    }
}

// MARK: - Results

extension HTTP2Exchange {
    var cost: TransferCost {
        TransferCost(
            connections: opensConnection ? 1 : 0,
            sent: stream?.sentBodyBytes ?? 0,
            received: stream?.receivedBodyBytes ?? 0
        )
    }

    /// Returns the response, or the reason why there is none, of a stream that has ended.
    func result(limits: HTTP2Limits) -> Result<HTTPResponse, HTTPFailure> {
        switch stream?.end {
        case .complete:
            guard let response = takeResponse() else { fallthrough }
            return .success(response)
        case nil, .cancelled:
            return .failure(failure(.receiveFailed, "the stream ended without a response"))
        case .reset(let code):
            let name = HTTP2Stream.name(ofCode: code)
            return .failure(failure(.receiveFailed, "the stream ended with \(name) before the response was complete"))
        case .bodyTooLarge:
            return .failure(
                failure(.bodyTooLarge, "the response's body is longer than \(limits.bodyBytes) bytes")
            )
        case .headersTooLarge:
            return .failure(
                failure(.headersTooLarge, "the response's headers are longer than \(limits.headerBytes) bytes")
            )
        }
    }

    /// Returns a failure, with the part of the response that has arrived.
    func failure(_ kind: HTTPFailure.Kind, code: UInt32? = nil, _ message: String) -> HTTPFailure {
        HTTPFailure(
            kind: kind,
            outcomeUnknown: isIssued,
            code: code.map { Int($0) },
            message: message,
            partialResponse: takeResponse()
        )
    }

    /// Returns the final response with the received part of its body; `nil` before its headers are complete.
    private func takeResponse() -> HTTPResponse? {
        guard let stream, stream.isHeadComplete else { return nil }
        return HTTPResponse(
            status: stream.status,
            body: HTTPBody(stream.takeBody()),
            httpVersion: .http2,
            newConnection: opensConnection,
            head: HTTPBody(stream.takeHead())
        )
    }
}

extension HTTP2RequestHead {
    /// Makes the fields of a pattern, the same as libcurl sends.
    convenience init(_ pattern: RequestPattern, userAgent: String) {
        var fields = [
            (name: ":method", value: pattern.method.rawValue),
            (name: ":path", value: pattern.endpoint.target),
            (name: ":scheme", value: pattern.endpoint.scheme.rawValue),
            (name: ":authority", value: pattern.endpoint.authority),
            (name: "user-agent", value: userAgent),
            (name: "accept", value: "*/*"),
        ]
        for (name, value) in pattern.headers {
            let name = name.lowercased()
            fields.removeAll { $0.name == name }
            fields.append((name, String(value.trimmingBlanks)))
        }
        if pattern.method == .post, !fields.contains(where: { $0.name == "content-type" }) {
            fields.append((name: "content-type", value: FormBody.contentType))
        }
        // Only a lasting pattern is known to hold no secret.
        self.init(fields, isSecret: !pattern.isLasting, hasBody: pattern.method == .post)
    }
}

extension String {
    /// HTTP/2 does not allow blanks around a value (https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1).
    fileprivate var trimmingBlanks: Substring {
        var value = self[...]
        while let first = value.first, first == " " || first == "\t" { value.removeFirst() }
        while let last = value.last, last == " " || last == "\t" { value.removeLast() }
        return value
    }
}

/// The parts that the requests of one kind share: method, URL and headers.
///
/// It is validated once, when it is made. An easy handle that carried a request of a lasting pattern stays prepared for
/// the next one. Everything in a lasting pattern therefore stays in memory, so it must not hold a secret.
package final class RequestPattern: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    package let method: Method
    /// The URL, possibly with a query.
    package let endpoint: Endpoint
    package let headers: [(String, String)]
    /// `true` if the pattern is used for many requests.
    let isLasting: Bool
    /// `true` if each header can be sent as it is: a line break in a value would start another header.
    let isSendable: Bool

    /// Makes a pattern for many requests; it must not hold a secret.
    package convenience init(method: Method, endpoint: Endpoint, headers: [(String, String)]) {
        self.init(method: method, endpoint: endpoint, headers: headers, isLasting: true)
    }

    init(method: Method, endpoint: Endpoint, headers: [(String, String)], isLasting: Bool) {
        self.method = method
        self.endpoint = endpoint
        self.headers = headers
        self.isLasting = isLasting
        isSendable = headers.allSatisfy { name, value in
            !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
                && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        }
    }

    /// The characters of a header's name (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default:
            "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension RequestPattern: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, host and path.
    ///
    /// Queries and headers are left out because they carry tokens.
    package var description: String { "\(method.rawValue) \(endpoint)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
