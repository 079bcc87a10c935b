package import Base

/// A result that is expensive to get, so it is got again at most every two seconds.
package actor CachedResult<Value: Sendable> {
    private let lifetime = MonitoringHandler.interval
    /// The time after which a result that does not come is not waited for.
    private let longestRun: Duration = .seconds(30)
    /// The age above which an earlier result is worse than none.
    private let longestLifetime: Duration = .seconds(600)

    private let time: any TimeSource
    private let compute: @Sendable () async throws -> Value
    private var current: (task: Task<Value, any Error>, startedAt: BootInstant, isRunning: Bool)?
    private var latest: (value: Value, at: BootInstant)?

    package init(time: any TimeSource, compute: @escaping @Sendable () async throws -> Value) {
        self.time = time
        self.compute = compute
    }

    /// Returns the result of the last two seconds, or a new one.
    ///
    /// Simultaneous callers share it.
    package func value() async throws -> Value {
        try await currentTask().value
    }

    /// Returns the last result without waiting, and begins to get a new one if it is not recent; `nil` if there is none
    /// of the last ten minutes.
    package func latestValue() -> Value? {
        _ = currentTask()
        return latest.flatMap { time.sinceBoot - $0.at < longestLifetime ? $0.value : nil }
    }

    private func currentTask() -> Task<Value, any Error> {
        let now = time.sinceBoot
        // A result that takes longer than its lifetime is not computed by two tasks at once.
        if let current, now - current.startedAt < (current.isRunning ? longestRun : lifetime) { return current.task }
        let task = Task {
            defer { finish(now) }
            let value = try await compute()
            if latest.map({ $0.at < now }) ?? true { latest = (value, now) }
            return value
        }
        current = (task, now, true)
        return task
    }

    private func finish(_ startedAt: BootInstant) {
        if current?.startedAt == startedAt { current?.isRunning = false }
    }
}
