import Base

/// The latencies of the last ten to twenty seconds, of which the first quartile counts.
///
/// The mean would not do, because it grows with the number of requests in flight. Nor would the minimum, because a
/// single answer from a cache would stand for all others.
struct RecentLatencies: Sendable {
    /// The time for which a latency counts, at most twice as long.
    private static let interval: Duration = .seconds(10)

    private var current = LatencyCounts()
    private var previous = LatencyCounts()
    private var intervalEndsAt: BootInstant?

    /// The latency that a quarter of all recent ones did not exceed, or zero if there are none.
    var firstQuartile: Duration { LatencyCounts.firstQuartile(of: current, previous) }

    mutating func record(_ latency: Duration, at now: BootInstant) {
        beginIntervalIfDue(at: now)
        current.add(latency)
    }

    private mutating func beginIntervalIfDue(at now: BootInstant) {
        if let intervalEndsAt, now < intervalEndsAt { return }
        previous = current
        current = LatencyCounts()
        intervalEndsAt = now + Self.interval
    }
}

/// A histogram of latencies with eight classes per doubling: the error is at most an eighth, and the memory does not
/// grow.
struct LatencyCounts: Sendable {
    private static let classesPerDoubling = 8
    /// Below eight milliseconds each is a class.
    ///
    /// The last class holds everything from four minutes up.
    private static let classCount = 16 * classesPerDoubling

    private var counts = [Int](repeating: 0, count: classCount)
    private var total = 0

    mutating func add(_ latency: Duration) {
        counts[Self.classIndex(of: max(0, latency.wholeMilliseconds))] += 1
        total += 1
    }

    /// Returns the latency that a quarter of all latencies did not exceed, rounded up to the end of its class, or zero
    /// if there are none.
    static func firstQuartile(of first: LatencyCounts, _ second: LatencyCounts) -> Duration {
        let total = first.total + second.total
        guard total > 0 else { return .zero }
        var remaining = (total + 3) / 4
        for number in 0..<classCount {
            remaining -= first.counts[number] + second.counts[number]
            if remaining <= 0 { return .milliseconds(upperBound(of: number)) }
        }
        preconditionFailure("the classes hold as many latencies as were added")
    }

    /// Returns the number of a latency's class: the position of the highest bit, and the three bits below it.
    private static func classIndex(of milliseconds: Int64) -> Int {
        guard milliseconds >= classesPerDoubling else { return Int(milliseconds) }
        let doubling = Int64.bitWidth - 1 - milliseconds.leadingZeroBitCount
        let step = Int(milliseconds >> (doubling - 3)) & (classesPerDoubling - 1)
        return min((doubling - 2) * classesPerDoubling + step, classCount - 1)
    }

    /// Returns the longest latency of a class, in milliseconds.
    private static func upperBound(of number: Int) -> Int64 {
        guard number >= classesPerDoubling else { return Int64(number) }
        let doubling = number / classesPerDoubling + 2
        return Int64(classesPerDoubling + number % classesPerDoubling + 1) << (doubling - 3) - 1
    }
}
