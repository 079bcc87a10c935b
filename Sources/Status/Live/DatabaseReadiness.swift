package import Base
package import Storage
private import Synchronization

/// The last result of a periodic check if results can be stored.
///
/// A probe that used the database itself would wait for it: up to ten seconds while a server is unreachable. The load
/// balancer would have given up by then.
package final class DatabaseReadiness: Sendable {
    static let interval: Duration = .seconds(2)
    /// A check that takes longer counts as failed.
    static let timeout: Duration = .seconds(3)

    package let store: any Store
    private let time: any TimeSource
    private let state = Mutex(State())

    private struct State {
        var problem: String? = "not_checked"
        var checkedAt: BootInstant?
        var lastSuccess: BootInstant?
    }

    package init(store: any Store, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Checks periodically until the task is cancelled.
    package func run() async {
        await time.repeat(every: Self.interval) { await check() }
    }

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
    package var problem: String? {
        let now = time.sinceBoot
        return state.withLock { state in
            if let checkedAt = state.checkedAt, now - checkedAt > Self.interval + Self.timeout { return "no_answer" }
            return state.problem
        }
    }

    /// The time since the last successful check, or `nil` if there was none.
    package var sinceLastSuccess: Duration? {
        let now = time.sinceBoot
        guard let lastSuccess = state.withLock(\.lastSuccess) else { return nil }
        return now - lastSuccess
    }
}
