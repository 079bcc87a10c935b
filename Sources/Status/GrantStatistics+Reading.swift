package import Base
package import Storage

extension GrantStatistics {
    /// Returns the time that the oldest due grant has waited, or `nil` if none is due.
    package func lateness(at now: Timestamp) -> Duration? { oldestDueAt.map { max(.zero, now - $0) } }

    /// The reasons of the `retrying` grants, the most frequent first.
    package var retryingByReason: [(reason: GrantReason, count: Int)] {
        retryingReasons.map { ($0.key, $0.value) }
            .sorted { ($1.count, $0.reason.rawValue) < ($0.count, $1.reason.rawValue) }
    }
}
