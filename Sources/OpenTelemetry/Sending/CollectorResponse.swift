internal import Base
package import HTTPClient

/// What a collector sends back, as far as it counts.
package struct CollectorResponse: Sendable {
    package let status: Int
    /// The wait that the collector asks for.
    package let retryAfter: Duration?
    /// The number of items that a successful response says were rejected.
    package let rejected: Int

    package init(status: Int, retryAfter: Duration? = nil, rejected: Int = 0) {
        self.status = status
        self.retryAfter = retryAfter
        self.rejected = rejected
    }

    package init(_ response: HTTPResponse) {
        self.init(
            status: response.status,
            retryAfter: response.retryAfter,
            rejected: Self.rejected(in: response.body.reveal())
        )
    }

    /// Reads `partialSuccess` (https://opentelemetry.io/docs/specs/otlp/#partial-success-1). A body in another form
    /// says nothing.
    static func rejected(in body: [UInt8]) -> Int {
        guard let partial = JSONValue.object(in: body)?["partialSuccess"] else { return 0 }
        guard let number = partial["rejectedDataPoints"] ?? partial["rejectedSpans"] else { return 0 }
        return Int(clamping: max(0, longInteger(number)))
    }

    /// A number of 64 bits is a string in OTLP's JSON, and readers must also take a number.
    private static func longInteger(_ value: JSONValue) -> Int64 {
        if let integer = value.integer { return integer }
        guard let text = value.string, let integer = Int64(text) else { return 0 }
        return integer
    }
}

/// What a response, or its absence, means for a request.
enum CollectorVerdict: Equatable {
    /// The collector has it, except for some items.
    case accepted(rejected: Int)
    /// The same request would get the same response.
    case refused
    /// It can be sent again, after the wait that the collector asks for.
    case retry(after: Duration?)

    /// The statuses after which a request can be repeated
    /// (https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes).
    private static let retryable = [429, 502, 503, 504]

    init(_ response: CollectorResponse) {
        if 200..<300 ~= response.status {
            self = .accepted(rejected: response.rejected)
        } else if Self.retryable.contains(response.status) {
            self = .retry(after: response.retryAfter)
        } else {
            self = .refused
        }
    }

    /// Without a complete response, the part that arrived decides.
    init(_ error: HTTPError) {
        switch error.kind {
        case .bodyTooLarge, .headersTooLarge:
            // Asking again would bring the same flood.
            let isAccepted = error.partialResponse.map { 200..<300 ~= $0.status } == true
            self = isAccepted ? .accepted(rejected: 0) : .refused
        case .invalidURL, .invalidHeader, .certificate, .shutDown, .cancelled: self = .refused
        case .resolve, .connect, .tls, .timeout, .sendFailed, .receiveFailed, .withheld, .expired, .other:
            self = .retry(after: nil)
        }
    }
}
