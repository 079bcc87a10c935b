import Base

/// The last snapshot, which is shared for a while because reading the database is expensive.
actor SnapshotCache {
    private struct Run {
        let task: Task<StatusSnapshot, any Error>
        let startedAt: BootInstant
        var isRunning = true
    }

    private struct Latest {
        let snapshot: StatusSnapshot
        let startedAt: BootInstant
    }

    private let lifetime: Duration
    /// The time after which a snapshot that does not come is not waited for.
    private let maximumRun: Duration = .seconds(30)
    /// The age above which an earlier snapshot is worse than none.
    private let maximumLifetime = LiveStatus.maximumAgeOfCounts

    private let time: any TimeSource
    private let read: @Sendable () async throws -> StatusSnapshot
    private var current: Run?
    private var latest: Latest?

    init(lifetime: Duration, time: any TimeSource, read: @escaping @Sendable () async throws -> StatusSnapshot) {
        self.lifetime = lifetime
        self.time = time
        self.read = read
    }

    /// Returns the last snapshot while its lifetime lasts, or a new one. Simultaneous callers share it.
    func freshSnapshot() async throws -> StatusSnapshot {
        try await currentTask().value
    }

    /// Returns the last snapshot without waiting, and begins to make a new one if it is not recent. It returns `nil` if
    /// there is none of the last ten minutes.
    func latestSnapshot() -> StatusSnapshot? {
        _ = currentTask()
        guard let latest, time.sinceBoot - latest.startedAt < maximumLifetime else { return nil }
        return latest.snapshot
    }

    private func currentTask() -> Task<StatusSnapshot, any Error> {
        let now = time.sinceBoot
        if let current, isShared(current, at: now) { return current.task }
        let task = Task {
            defer { finish(now) }
            let snapshot = try await read()
            keep(snapshot, startedAt: now)
            return snapshot
        }
        current = Run(task: task, startedAt: now)
        return task
    }

    private func isShared(_ run: Run, at now: BootInstant) -> Bool {
        // A snapshot that takes longer than its lifetime is not made by two tasks at once.
        let limit = run.isRunning ? maximumRun : lifetime
        return now - run.startedAt < limit
    }

    /// A run that took long does not replace the snapshot of a later one.
    private func keep(_ snapshot: StatusSnapshot, startedAt: BootInstant) {
        if let latest, latest.startedAt >= startedAt { return }
        latest = Latest(snapshot: snapshot, startedAt: startedAt)
    }

    private func finish(_ startedAt: BootInstant) {
        if current?.startedAt == startedAt { current?.isRunning = false }
    }
}
