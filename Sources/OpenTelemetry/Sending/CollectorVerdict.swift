internal import HTTPClient

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
