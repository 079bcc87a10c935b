import Base

/// A result that is expensive to get, so it is shared for a while.
actor CachedResult<Value: Sendable> {
    private struct Run {
        let task: Task<Value, any Error>
        let startedAt: BootInstant
        var isRunning = true
    }

    private struct Latest {
        let value: Value
        let startedAt: BootInstant
    }

    private let lifetime: Duration
    /// The time after which a result that does not come is not waited for.
    private let maximumRun: Duration = .seconds(30)
    /// The age above which an earlier result is worse than none.
    private let maximumLifetime = LiveStatus.maximumAgeOfCounts

    private let time: any TimeSource
    private let compute: @Sendable () async throws -> Value
    private var current: Run?
    private var latest: Latest?

    init(lifetime: Duration, time: any TimeSource, compute: @escaping @Sendable () async throws -> Value) {
        self.lifetime = lifetime
        self.time = time
        self.compute = compute
    }

    /// Returns the last result while its lifetime lasts, or a new one. Simultaneous callers share it.
    func value() async throws -> Value {
        try await currentTask().value
    }

    /// Returns the last result without waiting, and begins to get a new one if it is not recent. It returns `nil` if
    /// there is none of the last ten minutes.
    func latestValue() -> Value? {
        _ = currentTask()
        guard let latest, time.sinceBoot - latest.startedAt < maximumLifetime else { return nil }
        return latest.value
    }

    private func currentTask() -> Task<Value, any Error> {
        let now = time.sinceBoot
        if let current, isShared(current, at: now) { return current.task }
        let task = Task {
            defer { finish(now) }
            let value = try await compute()
            keep(value, startedAt: now)
            return value
        }
        current = Run(task: task, startedAt: now)
        return task
    }

    private func isShared(_ run: Run, at now: BootInstant) -> Bool {
        // A result that takes longer than its lifetime is not computed by two tasks at once.
        let limit = run.isRunning ? maximumRun : lifetime
        return now - run.startedAt < limit
    }

    /// A run that took long does not replace the result of a later one.
    private func keep(_ value: Value, startedAt: BootInstant) {
        if let latest, latest.startedAt >= startedAt { return }
        latest = Latest(value: value, startedAt: startedAt)
    }

    private func finish(_ startedAt: BootInstant) {
        if current?.startedAt == startedAt { current?.isRunning = false }
    }
}
