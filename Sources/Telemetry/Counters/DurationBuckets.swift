/// Counts of durations by length, in the buckets of a Prometheus histogram.
package struct DurationBuckets: Sendable {
    /// The upper bounds, from the resolution of the clock to the longest time that a caller waits for a refresh.
    package static let bounds: [Duration] = [
        .milliseconds(1), .milliseconds(2), .milliseconds(5), .milliseconds(10), .milliseconds(25), .milliseconds(50),
        .milliseconds(100), .milliseconds(250), .milliseconds(500), .seconds(1), .milliseconds(2_500), .seconds(5),
        .seconds(10), .seconds(30),
    ]

    /// Durations above the previous bound and up to this one, for each bound.
    package private(set) var counts = [Int](repeating: 0, count: Self.bounds.count)
    package private(set) var count = 0
    package private(set) var sum: Duration = .zero

    package init() {}

    /// Returns the bound that a `share` of the durations does not exceed, or `nil` without one.
    package func bound(of share: Double) -> Duration? {
        var below = 0
        for (bound, count) in zip(Self.bounds, counts) {
            below += count
            if below > 0, Double(below) >= share * Double(self.count) { return bound }
        }
        return nil
    }

    /// Counts a duration.
    ///
    /// A negative one counts as zero.
    package mutating func record(_ span: Duration) {
        let span = max(.zero, span)
        if let index = Self.bounds.firstIndex(where: { span <= $0 }) { counts[index] += 1 }
        count += 1
        sum += span
    }
}
