package import Base

/// One operation of a trace: what was done for a caller, and how long it took.
package struct Span: Sendable {
    /// The part in a call. The raw values are those of OTLP.
    package enum Kind: Int, Sendable {
        /// It answers a request.
        case server = 2
        /// It makes a request.
        case client = 3
    }

    package struct Attribute: Equatable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package let traceID: TraceID
    package let id: SpanID
    package let parentID: SpanID
    package let name: String
    package let kind: Kind
    package let start: Timestamp
    package internal(set) var duration: Duration = .zero
    /// No attribute names a user.
    package internal(set) var attributes: [Attribute] = []
    package internal(set) var hasFailed = false

    /// The context of what is done within this span.
    package var context: TraceContext { TraceContext(traceID: traceID, spanID: id, isSampled: true) }
}
