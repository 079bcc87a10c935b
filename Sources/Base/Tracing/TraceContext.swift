/// Where an operation belongs in a trace, as its caller says in the header `traceparent`
/// (https://www.w3.org/TR/trace-context/#traceparent-header).
///
///     TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")?.traceID.text
///     // 4bf92f3577b34da6a3ce929d0e0e4736
package struct TraceContext: Hashable, Sendable {
    package let traceID: TraceID
    /// The span of the caller, which is the parent of what happens for it.
    package let spanID: SpanID
    /// `true` if the caller records its spans. The worker follows it.
    package let isSampled: Bool

    package init(traceID: TraceID, spanID: SpanID, isSampled: Bool) {
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = isSampled
    }

    /// The context of the request that this task answers, if its caller has sent one.
    ///
    /// Tasks that begin in it inherit it, also those that go on with the work of others. So only what is about the
    /// request itself reads it.
    @TaskLocal package static var current: TraceContext?
}

extension TraceContext {
    /// The length of version 00. A later version can only be longer.
    private static let length = 55

    /// Reads the header, and returns `nil` for a value that must be ignored.
    package init?(traceparent: String) {
        let bytes = Array(traceparent.utf8)
        guard bytes.count >= Self.length, [2, 35, 52].allSatisfy({ bytes[$0] == UInt8(ascii: "-") }) else { return nil }
        guard let version = Self.byte(bytes[0..<2]), version != 0xff else { return nil }
        guard bytes.count == Self.length || version > 0 && bytes[Self.length] == UInt8(ascii: "-") else { return nil }
        guard let traceID = TraceID(bytes[3..<35]), let spanID = SpanID(bytes[36..<52]),
            let flags = Self.byte(bytes[53..<55])
        else { return nil }
        self.init(traceID: traceID, spanID: spanID, isSampled: flags & 1 == 1)
    }

    /// The header in version 00. It keeps the flag of a recorded trace, and no others.
    package var traceparent: String {
        let flags = isSampled ? "01" : "00"
        return "00-\(traceID.text)-\(spanID.text)-\(flags)"
    }

    private static func byte(_ digits: some Collection<UInt8>) -> UInt8? { Hexadecimal.decode(digits)?.first }
}
