package import Clocks

/// The number of requests worth having in flight: as many as the rate needs at the endpoint's own latency.
///
/// More would not be answered sooner, but would cost memory and connections, each of which begins with a handshake. The
/// latency is the first quartile of recent ones. The mean would not do, because it grows with the number of requests in
/// flight; nor the minimum, because a single answer from a cache would stand for all others.
package struct InFlightLimit: Sendable {
    /// The number that is always allowed: with fewer, a burst of a few grants would be sent in several rounds.
    package static let floor = 64
    /// The allowance for latencies that vary.
    private static let slack = 2.0
    /// The time for which an answer counts; at most twice as long.
    private static let memory: Duration = .seconds(10)

    private let ceiling: Int
    private var latest = LatencyCounts()
    private var before = LatencyCounts()
    private var turnsAt: BootInstant?

    /// Creates a limit that never exceeds `ceiling`.
    package init(ceiling: Int) {
        self.ceiling = ceiling
    }

    /// Records the latency of a successful refresh.
    ///
    /// Refusals do not count: one that throttles is often sent at once, before the endpoint has done any work.
    package mutating func learn(_ latency: Duration, at now: BootInstant) {
        if turnsAt.map({ now >= $0 }) ?? true {
            before = latest
            latest = LatencyCounts()
            turnsAt = now + Self.memory
        }
        latest.add(latency)
    }

    /// Returns the limit at a rate in requests per second.
    package func limit(at rate: Double) -> Int {
        let wanted = (rate * LatencyCounts.firstQuartile(of: latest, before).inSeconds * Self.slack).rounded(.up)
        return Int(min(max(wanted, Double(Self.floor)), Double(ceiling)))
    }
}

/// A histogram of latencies with eight classes per doubling: the error is at most an eighth, and the memory does not
/// grow.
private struct LatencyCounts: Sendable {
    private static let classesPerDoubling = 8
    /// Below eight milliseconds each is a class; the last class holds everything from four minutes up.
    private static let classCount = 16 * classesPerDoubling

    private var counts = [Int](repeating: 0, count: classCount)
    private var all = 0

    mutating func add(_ latency: Duration) {
        counts[Self.number(of: max(0, latency.wholeMilliseconds))] += 1
        all += 1
    }

    /// Returns the latency that a quarter of all latencies did not exceed, rounded up to the end of its class; zero if
    /// there are none.
    static func firstQuartile(of first: LatencyCounts, _ second: LatencyCounts) -> Duration {
        let all = first.all + second.all
        guard all > 0 else { return .zero }
        var left = (all + 3) / 4
        for number in 0..<classCount {
            left -= first.counts[number] + second.counts[number]
            if left <= 0 { return .milliseconds(last(of: number)) }
        }
        preconditionFailure("the classes hold as many latencies as were added")
    }

    /// Returns the number of a latency's class: the position of the highest bit, and the three bits below it.
    private static func number(of milliseconds: Int64) -> Int {
        guard milliseconds >= classesPerDoubling else { return Int(milliseconds) }
        let doubling = Int64.bitWidth - 1 - milliseconds.leadingZeroBitCount
        let place = Int(milliseconds >> (doubling - 3)) & (classesPerDoubling - 1)
        return min((doubling - 2) * classesPerDoubling + place, classCount - 1)
    }

    /// Returns the longest latency of a class, in milliseconds.
    private static func last(of number: Int) -> Int64 {
        guard number >= classesPerDoubling else { return Int64(number) }
        let doubling = number / classesPerDoubling + 2
        return Int64(classesPerDoubling + number % classesPerDoubling + 1) << (doubling - 3) - 1
    }
}
