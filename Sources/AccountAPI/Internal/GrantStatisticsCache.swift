package import Clocks
package import Store

/// A cache of the counts over all grants. Counting reads the whole index, so it is repeated at most every five seconds.
package actor GrantStatisticsCache {
    private static let lifetime: Duration = .seconds(5)

    private let store: any GrantStore
    private let time: any TimeSource
    private var current: (task: Task<GrantStatistics, any Error>, startedAt: BootInstant)?
    private var latest: GrantStatistics?

    package init(store: any GrantStore, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Returns the counts of the last five seconds, or counts now; simultaneous callers share one count.
    package func grantStatistics() async throws -> GrantStatistics {
        try await currentTask().value
    }

    /// Returns the last counts without waiting, and begins a new count if they are too old; `nil` before the first one.
    package func latestStatistics() -> GrantStatistics? {
        _ = currentTask()
        return latest
    }

    private func currentTask() -> Task<GrantStatistics, any Error> {
        let now = time.sinceBoot
        if let current, now - current.startedAt < Self.lifetime { return current.task }
        let task = Task {
            let statistics = try await store.grantStatistics(at: time.now)
            latest = statistics
            return statistics
        }
        current = (task, now)
        return task
    }
}
