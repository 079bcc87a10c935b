internal import Base

/// The median and the upper percentiles of a set of values.
package struct Percentiles: Sendable {
    package let p50: Int64
    package let p95: Int64
    package let p99: Int64

    init?(_ histogram: Histogram) {
        guard
            let p50 = histogram.percentile(0.50),
            let p95 = histogram.percentile(0.95),
            let p99 = histogram.percentile(0.99)
        else { return nil }
        self.p50 = p50
        self.p95 = p95
        self.p99 = p99
    }

    func write(_ quantity: String, into line: inout JSONLine) {
        line.field("\(quantity)_p50_ms", p50)
        line.field("\(quantity)_p95_ms", p95)
        line.field("\(quantity)_p99_ms", p99)
    }
}
