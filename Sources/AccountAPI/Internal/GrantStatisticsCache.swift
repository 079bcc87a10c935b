package import Clocks
package import Store

/// Counts over all grants, repeated at most every five seconds for all callers, because counting reads the whole index.
package actor GrantStatisticsCache {
    private static let lifetime: Duration = .seconds(5)

    private let store: any GrantStore
    private let time: any TimeSource
    private var counting: (task: Task<GrantStatistics, any Error>, since: BootInstant)?
    private var latest: GrantStatistics?

    package init(store: any GrantStore, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Returns the counts of the last five seconds, or counts now; callers that wait for a count share it.
    package func grantStatistics() async throws -> GrantStatistics {
        try await current().value
    }

    /// Returns the last counts without waiting for the count that this may begin; `nil` before the first one is done.
    package func glimpse() -> GrantStatistics? {
        _ = current()
        return latest
    }

    private func current() -> Task<GrantStatistics, any Error> {
        let now = time.sinceBoot
        if let counting, now - counting.since < Self.lifetime { return counting.task }
        let task = Task {
            let statistics = try await store.grantStatistics(at: time.now)
            latest = statistics
            return statistics
        }
        counting = (task, now)
        return task
    }
}
