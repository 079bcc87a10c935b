/// The counts of one interval.
package struct IntervalCounts: Sendable {
    package let interval: Duration
    /// The number of refreshes by outcome; a missing outcome did not occur.
    package let outcomes: [RefreshOutcome: Int]
    /// The milliseconds from sending a request to the end of its answer; `nil` without answers.
    package let latency: Percentiles?
    /// The milliseconds from a grant's due time to its try; `nil` without tries.
    package let lateness: Percentiles?
}
