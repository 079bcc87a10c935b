package import Clocks

/// How many requests should be on their way at once: as many as the rate asks for at the endpoint's own latency.
///
/// More would not be answered sooner; they would cost connections, of which each begins with a handshake, and memory. The latency is
/// the first quartile of the last while: not the mean, because what is usual grows with the very number that is to be found, and not
/// the quickest, because one answer in sixty that came from a cache would say how long the others take.
package struct InFlightLimit: Sendable {
    /// So many are always allowed: below, a burst of a few grants would be sent in turns.
    package static let floor = 64
    /// Room for latencies that differ.
    private static let slack = 2.0
    /// How long an answer counts, and at most twice as long.
    private static let memory: Duration = .seconds(10)

    private let ceiling: Int
    private var latest = LatencyCounts()
    private var before = LatencyCounts()
    private var turnsAt: BootInstant?

    /// A limit that never goes beyond `ceiling`.
    package init(ceiling: Int) {
        self.ceiling = ceiling
    }

    /// Takes note of how long a refresh took that was granted.
    ///
    /// A refusal tells nothing of that: one that throttles is often made at once, before the endpoint has done any work.
    package mutating func learn(_ latency: Duration, at now: BootInstant) {
        if turnsAt.map({ now >= $0 }) ?? true {
            before = latest
            latest = LatencyCounts()
            turnsAt = now + Self.memory
        }
        latest.add(latency)
    }

    /// The limit at a rate in requests a second.
    package func limit(at rate: Double) -> Int {
        let wanted = (rate * LatencyCounts.firstQuartile(of: latest, before).inSeconds * Self.slack).rounded(.up)
        return Int(min(max(wanted, Double(Self.floor)), Double(ceiling)))
    }
}

/// How many latencies fell into each of a row of classes, eight to a doubling: one is known to an eighth, in memory that does
/// not grow.
private struct LatencyCounts: Sendable {
    private static let classesPerDoubling = 8
    /// Below eight milliseconds each is a class; the last holds whatever takes four minutes or longer.
    private static let classCount = 16 * classesPerDoubling

    private var counts = [Int](repeating: 0, count: classCount)
    private var all = 0

    mutating func add(_ latency: Duration) {
        counts[Self.number(of: max(0, latency.wholeMilliseconds))] += 1
        all += 1
    }

    /// What a quarter of all latencies did not exceed, rounded up to the last of its class; zero where there is none.
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

    /// The place of the highest bit, and the three bits below it.
    private static func number(of milliseconds: Int64) -> Int {
        guard milliseconds >= classesPerDoubling else { return Int(milliseconds) }
        let doubling = Int64.bitWidth - 1 - milliseconds.leadingZeroBitCount
        let place = Int(milliseconds >> (doubling - 3)) & (classesPerDoubling - 1)
        return min((doubling - 2) * classesPerDoubling + place, classCount - 1)
    }

    /// The longest latency of a class, in milliseconds.
    private static func last(of number: Int) -> Int64 {
        guard number >= classesPerDoubling else { return Int64(number) }
        let doubling = number / classesPerDoubling + 2
        return Int64(classesPerDoubling + number % classesPerDoubling + 1) << (doubling - 3) - 1
    }
}
