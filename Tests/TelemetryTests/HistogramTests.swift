import Base
import Testing

@testable import Telemetry

@Suite("A histogram")
struct HistogramTests {
    @Test("has no percentiles while it is empty")
    func empty() {
        #expect(Histogram().percentile(0.5) == nil)
    }

    @Test("is exact for small values and counts negative ones as zero")
    func small() {
        var histogram = Histogram()
        for value in [-5, 0, 1, 2, 63] as [Int64] { histogram.record(value) }
        #expect([0.2, 0.4, 0.6, 0.8, 1].map { histogram.percentile($0) } == [0, 0, 1, 2, 63])
    }

    @Test("never shows more than the largest value", arguments: [64, 100, 1_000_001, 1 << 40] as [Int64])
    func largest(value: Int64) {
        var histogram = Histogram()
        histogram.record(value)
        #expect(histogram.percentile(0.99).map { $0 <= value && Double($0) >= 0.98 * Double(value) } == true)
    }

    @Test("counts a value beyond its range as the end of the range")
    func beyond() {
        var histogram = Histogram()
        histogram.record(.max)
        #expect(histogram.percentile(1) == 1 << 40)
    }

    @Test(
        "is within 2 % of the exact percentile of random values",
        arguments: [1, 10, 100, 20_000],
        [UInt64.random(in: .min ... .max)]
    )
    func accuracy(count: Int, seed: UInt64) {
        let random = SeededRandom(seed: seed)
        var histogram = Histogram()
        // Evenly spread over 12 orders of magnitude, so that every octave occurs.
        let values = (0..<count).map { _ in Int64(1) << Int64(random.nextBits() % 39) + Int64(random.nextBits() % 1_000)
        }
        for value in values { histogram.record(value) }
        let sorted = values.sorted()
        for share in [0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 1] {
            let exact = Double(sorted[max(1, Int((share * Double(count)).rounded(.up))) - 1])
            let found = Double(histogram.percentile(share) ?? -1)
            #expect(abs(found - exact) <= 0.02 * exact, "seed \(seed) share \(share)")
        }
    }
}
