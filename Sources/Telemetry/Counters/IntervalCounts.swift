package struct IntervalCounts: Sendable {
    package internal(set) var interval: Duration = .zero
    /// Refreshes by outcome. A missing outcome did not occur.
    package internal(set) var outcomes: [RefreshOutcome: Int] = [:]
    /// Successes without a line in the metrics log.
    package internal(set) var notLogged = 0
    /// The milliseconds from sending a request to the end of its answer.
    package internal(set) var latency = Histogram()
    /// The milliseconds from a grant's due time to its try.
    package internal(set) var lateness = Histogram()
}
