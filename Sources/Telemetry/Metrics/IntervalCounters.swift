package import Base
private import Synchronization

/// Counts refreshes from many tasks: per interval until the next summary, in total since the start, and by minute and
/// hour until they are stored for the status page.
package final class IntervalCounters: Sendable {
    /// The totals, which only grow.
    package let lifetime: LifetimeCounters
    private let time: any TimeSource
    private let state: Mutex<(start: BootInstant, counts: IntervalCounts, activity: RecentActivity)>

    package init(time: any TimeSource) {
        self.time = time
        lifetime = LifetimeCounters(time: time)
        state = Mutex((time.sinceBoot, IntervalCounts(), RecentActivity()))
    }

    /// Counts refreshes, of which a number has no line in the metrics log.
    package func record(_ refreshes: [CountedRefresh], notLogged: Int = 0) {
        lifetime.record(refreshes)
        let now = time.now
        state.withLock { state in
            state.activity.record(refreshes, at: now)
            state.counts.notLogged += notLogged
            for index in refreshes.indices {
                state.counts.lateness.record(refreshes[index].lateness.wholeMilliseconds)
                if let latency = refreshes[index].latency { state.counts.latency.record(latency.wholeMilliseconds) }
            }
            for (outcome, count) in refreshes.outcomes { state.counts.outcomes[outcome, default: 0] += count }
        }
    }

    /// The refreshes that are not taken yet.
    package var activity: RecentActivity { state.withLock { $0.activity } }

    /// Returns the refreshes since the last call, to be stored.
    package func takeActivity() -> RecentActivity {
        state.withLock { state in
            defer { state.activity = RecentActivity() }
            return state.activity
        }
    }

    /// Takes back refreshes that could not be stored.
    package func restore(_ activity: RecentActivity) {
        let now = time.now
        state.withLock { $0.activity.add(activity, at: now) }
    }

    /// Returns the counts since the last call, and resets them.
    package func drain() -> IntervalCounts {
        let now = time.sinceBoot
        return state.withLock { state in
            var counts = state.counts
            counts.interval = now - state.start
            (state.start, state.counts) = (now, IntervalCounts())
            return counts
        }
    }
}

extension [CountedRefresh] {
    /// The outcomes with their numbers.
    ///
    /// An outcome that comes again after another one is listed again.
    ///
    /// Most refreshes of a batch have the same outcome, so they are counted together.
    var outcomes: [(RefreshOutcome, Int)] {
        var runs: [(RefreshOutcome, Int)] = []
        for index in indices {
            let outcome = self[index].outcome
            if let last = runs.last, last.0 == outcome {
                runs[runs.count - 1].1 += 1
            } else {
                runs.append((outcome, 1))
            }
        }
        return runs
    }
}

/// One try to refresh a grant, as the counters need it.
///
/// `lateness` is the time from the grant's due time to this try, where a negative one counts as zero. `latency` is the
/// time from the request to the end of its response, or `nil` without one.
package typealias CountedRefresh = (outcome: RefreshOutcome, lateness: Duration, latency: Duration?)

/// The outcome of one try to refresh a grant.
package enum RefreshOutcome: String, CaseIterable, Sendable {
    /// A new access token is stored.
    case refreshed
    /// The try failed for a temporary reason.
    ///
    /// Another one follows.
    case retrying
    /// Google refused the grant, and the refusal waits for confirmation.
    case held
    /// A policy or an administrator blocks the grant.
    case suspended
    /// Only the user can repair the grant, by signing in again.
    case reauthRequired = "reauth_required"
    /// The grant is dead.
    case disconnected
    /// The client is at fault.
    ///
    /// The grant does not change.
    case unchanged
    /// The answer came for a refresh token that is not the stored one any more, and was not used.
    case void
    /// Another claim had replaced the one of this answer, which was not a success: another worker tries the grant.
    case lostLease = "lost_lease"
}

/// The counts of one interval.
package struct IntervalCounts: Sendable {
    package fileprivate(set) var interval: Duration = .zero
    /// The number of refreshes by outcome.
    ///
    /// A missing outcome did not occur.
    package fileprivate(set) var outcomes: [RefreshOutcome: Int] = [:]
    /// The number of successes without a line in the metrics log.
    package fileprivate(set) var notLogged = 0
    /// The milliseconds from sending a request to the end of its answer.
    package fileprivate(set) var latency = Histogram()
    /// The milliseconds from a grant's due time to its try.
    package fileprivate(set) var lateness = Histogram()
}

/// Counts of values by size, for percentiles with an error of at most 2 %, in constant memory.
///
/// Buckets are exact below 64. Above that, each power of two has 32 buckets of equal width, and the middle of a bucket
/// represents all its values. Recording is a shift and an addition. Values beyond 2^40 count as 2^40 (in milliseconds,
/// 35 years).
package struct Histogram: Sendable {
    private static let bits = 5
    private static let perOctave = 1 << bits
    private static let highest: UInt64 = 1 << 40

    private var buckets = [UInt32](repeating: 0, count: Self.index(of: Self.highest) + 1)
    private var largest: UInt64 = 0
    private(set) var count = 0

    /// Counts a value.
    ///
    /// A negative one counts as zero.
    mutating func record(_ value: Int64) {
        let value = min(UInt64(max(0, value)), Self.highest)
        buckets[Self.index(of: value)] += 1
        largest = max(largest, value)
        count += 1
    }

    /// Returns the smallest value that a `share` (above 0, up to 1) of all values does not exceed, or `nil` if there
    /// are no values.
    func percentile(_ share: Double) -> Int64? {
        guard count > 0 else { return nil }
        var remaining = max(1, Int((share * Double(count)).rounded(.up)))
        for (index, occurrences) in buckets.enumerated() {
            remaining -= Int(occurrences)
            if remaining <= 0 { return Int64(min(Self.middle(of: index), largest)) }
        }
        return Int64(largest)
    }

    private static func index(of value: UInt64) -> Int {
        guard value >= perOctave else { return Int(value) }
        let shift = UInt64.bitWidth - 1 - value.leadingZeroBitCount - bits
        return shift * perOctave + Int(value >> UInt64(shift))
    }

    private static func middle(of index: Int) -> UInt64 {
        guard index >= 2 * perOctave else { return UInt64(index) }
        let shift = index / perOctave - 1
        let first = UInt64(index - shift * perOctave) << UInt64(shift)
        return first + (1 << UInt64(shift - 1))
    }
}
