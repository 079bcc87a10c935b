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
