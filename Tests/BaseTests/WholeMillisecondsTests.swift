import Testing

@testable import Base

@Suite("A span in milliseconds")
struct WholeMillisecondsTests {
    @Test(
        "is rounded toward zero and limited",
        arguments: [
            (.zero, 0), (.milliseconds(1500), 1500), (.milliseconds(-1500), -1500), (.microseconds(1999), 1),
            (.microseconds(-1999), -1), (.nanoseconds(-1), 0), (.seconds(9_000_000_000), 9_000_000_000_000),
            (.seconds(Int64.max), 9_000_000_000_000), (.seconds(Int64.min), -9_000_000_000_000),
            (Duration(attoseconds: .max), 9_000_000_000_000), (Duration(attoseconds: .min), -9_000_000_000_000),
        ] as [(Duration, Int64)]
    )
    func rounding(span: Duration, milliseconds: Int64) {
        #expect(span.wholeMilliseconds == milliseconds)
    }
}
