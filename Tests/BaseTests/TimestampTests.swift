import Base
import Foundation
import Testing

@Suite("An instant in ISO 8601")
struct TimestampTests {
    @Test(
        "shows milliseconds or whole seconds",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z", "2000-02-29T00:00:00Z"),
            (1_795_230_059_123, "2026-11-21T03:00:59.123Z", "2026-11-21T03:00:59Z"),
            (Int64.max, "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59Z"),
            (Int64.min, "0000-01-01T00:00:00.000Z", "0000-01-01T00:00:00Z"),
        ]
    )
    func shows(milliseconds: Int64, precise: String, coarse: String) {
        let instant = Timestamp(milliseconds: milliseconds)
        #expect(instant.iso8601 == precise)
        #expect(instant.iso8601Seconds == coarse)
    }
    @Test("of a damaged number can be compared, moved and shown like any other", arguments: [Int64.min, .max])
    func extremes(milliseconds: Int64) {
        let (instant, opposite) = (Timestamp(milliseconds: milliseconds), Timestamp(milliseconds: ~milliseconds))
        let span = instant - opposite
        #expect((span > .zero) == (milliseconds > 0) && instant - instant == .zero)
        #expect(instant + span == instant && (instant - span < instant) == (milliseconds > 0))
        let boot = BootInstant(milliseconds: milliseconds)
        #expect(boot + (boot - BootInstant(milliseconds: ~milliseconds)) == boot)
    }
}
