import Testing

@testable import Base

@Suite("The header traceparent")
struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    @Test("has the ids of trace and span, and whether the caller records", arguments: [("01", true), ("00", false)])
    func valid(flags: String, isSampled: Bool) throws {
        let context = try #require(TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-\(flags)"))
        #expect(context.traceID.text == Self.trace)
        #expect(context.spanID.text == Self.span)
        #expect(context.isSampled == isSampled)
    }

    @Test(
        "of a later version can be longer, and have further flags",
        arguments: ["cc-\(trace)-\(span)-01", "cc-\(trace)-\(span)-01-what-comes", "00-\(trace)-\(span)-ff"]
    )
    func later(header: String) throws {
        #expect(try #require(TraceContext(traceparent: header)).isSampled)
    }

    @Test(
        "is ignored if it is invalid",
        arguments: [
            "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-1",
            "00-\(trace)-\(span)-011", "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-more",
            "ff-\(trace)-\(span)-01", "0g-\(trace)-\(span)-01", "0-\(trace)-\(span)-01", "+0-\(trace)-\(span)-01",
            "cc-\(trace)-\(span)-01.more", "cc-\(trace)-\(span)-011",
            "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01", "00-\(trace)-\(span)-0A",
            "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
            "00_\(trace)_\(span)_01", " 00-\(trace)-\(span)-01", "00-\(trace)-\(span)-01 ",
            "00-\(trace.dropLast())x-\(span)-01", "00-\(trace.dropLast())é-\(span)-01", "00-\(trace)-\(span)-+1",
        ]
    )
    func invalid(header: String) {
        #expect(TraceContext(traceparent: header) == nil)
    }

    @Test(
        "is passed on in version 00, with no other flag than that of a recorded trace",
        arguments: [
            ("00-\(trace)-\(span)-01", "01"), ("00-\(trace)-\(span)-00", "00"), ("00-\(trace)-\(span)-02", "00"),
            ("cc-\(trace)-\(span)-ff-what-comes", "01"),
        ]
    )
    func passedOn(header: String, flags: String) throws {
        let context = try #require(TraceContext(traceparent: header))
        #expect(context.traceparent == "00-\(Self.trace)-\(Self.span)-\(flags)")
    }

    @Test("of the worker's own spans never has an empty id")
    func random() {
        #expect(SpanID(random: ZeroFirst()).text == "00000000000000ab")
    }

    /// A source whose first number is zero.
    private final class ZeroFirst: RandomSource {
        private let numbers = Shared<[UInt64]>([0, 0xab])

        func nextUnit() -> Double { 0 }

        func nextBits() -> UInt64 {
            let next = numbers.value[0]
            numbers.value = Array(numbers.value.dropFirst())
            return next
        }
    }
}
