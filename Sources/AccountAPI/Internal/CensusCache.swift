package import Clocks
package import Store

/// Counts over all grants, repeated at most every five seconds for all callers, because counting reads the whole index.
package actor CensusCache {
    private static let lifetime: Duration = .seconds(5)

    private let store: any GrantStore
    private let time: any TimeSource
    private var counting: (task: Task<Census, any Error>, since: BootInstant)?
    private var latest: Census?

    package init(store: any GrantStore, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Returns the counts of the last five seconds, or counts now; callers that wait for a count share it.
    package func census() async throws -> Census {
        try await current().value
    }

    /// Returns the last counts without waiting for the count that this may begin; `nil` before the first one is done.
    package func glimpse() -> Census? {
        _ = current()
        return latest
    }

    private func current() -> Task<Census, any Error> {
        let now = time.sinceBoot
        if let counting, now - counting.since < Self.lifetime { return counting.task }
        let task = Task {
            let census = try await store.census(at: time.now)
            latest = census
            return census
        }
        counting = (task, now)
        return task
    }
}
