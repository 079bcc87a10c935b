package import Base
package import Storage
private import Synchronization

/// The last result of a periodic check if results can be stored.
///
/// A probe that used the database itself would wait for it: up to ten seconds while a server is unreachable. The load
/// balancer would have given up by then.
package final class DatabaseReadiness: Sendable {
    /// The pause between two checks.
    static let interval: Duration = .seconds(2)
    /// The time limit of one check: a longer one counts as failed.
    static let timeout: Duration = .seconds(3)

    let store: any Store
    private let time: any TimeSource
    private let state = Mutex(
        (problem: String?.some("not_checked"), checkedAt: BootInstant?.none, lastSuccess: BootInstant?.none)
    )

    package init(store: any Store, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Checks periodically until the task is cancelled.
    package func run() async {
        await time.repeat(every: Self.interval) { await check() }
    }

    /// Checks once and records the outcome.
    package func check() async {
        let problem: String?
        do {
            try await store.checkUsable()
            problem = nil
        } catch let error as StoreError {
            problem = error.code.rawValue
        } catch {
            problem = "unknown"
        }
        let now = time.sinceBoot
        state.withLock { state in
            state.problem = problem
            state.checkedAt = now
            if problem == nil { state.lastSuccess = now }
        }
    }

    /// The code of the database's problem, or `nil` if results can be stored.
    var problem: String? {
        let now = time.sinceBoot
        return state.withLock { state in
            guard let checkedAt = state.checkedAt else { return state.problem }
            return now - checkedAt > Self.interval + Self.timeout ? "no_answer" : state.problem
        }
    }

    /// The time since the last successful check, or `nil` if there was none.
    var sinceLastSuccess: Duration? {
        let now = time.sinceBoot
        return state.withLock { state in state.lastSuccess.map { now - $0 } }
    }
}

/// A result that is expensive to get, so it is got again at most every two seconds.
actor CachedResult<Value: Sendable> {
    private let lifetime = MonitoringHandler.interval
    /// The time after which a result that does not come is not waited for.
    private let maximumRun: Duration = .seconds(30)
    /// The age above which an earlier result is worse than none.
    private let maximumLifetime: Duration = .seconds(600)

    private let time: any TimeSource
    private let compute: @Sendable () async throws -> Value
    private var current: (task: Task<Value, any Error>, startedAt: BootInstant, isRunning: Bool)?
    private var latest: (value: Value, at: BootInstant)?

    init(time: any TimeSource, compute: @escaping @Sendable () async throws -> Value) {
        self.time = time
        self.compute = compute
    }

    /// Returns the result of the last two seconds, or a new one.
    ///
    /// Simultaneous callers share it.
    func value() async throws -> Value {
        try await currentTask().value
    }

    /// Returns the last result without waiting, and begins to get a new one if it is not recent.
    ///
    /// It returns `nil` if there is none of the last ten minutes.
    func latestValue() -> Value? {
        _ = currentTask()
        return latest.flatMap { time.sinceBoot - $0.at < maximumLifetime ? $0.value : nil }
    }

    private func currentTask() -> Task<Value, any Error> {
        let now = time.sinceBoot
        // A result that takes longer than its lifetime is not computed by two tasks at once.
        if let current, now - current.startedAt < (current.isRunning ? maximumRun : lifetime) { return current.task }
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

/// The phase of the process, for load balancers that decide whether to send it requests.
package enum ServingPhase: String, Sendable {
    case starting
    case serving
    /// Requests in progress are completed. New ones should go to another worker.
    case draining
}
