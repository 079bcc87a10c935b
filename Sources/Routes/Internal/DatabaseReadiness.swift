package import Base
package import Storage
private import Synchronization

/// The last result of a periodic check if results can be stored.
///
/// A probe that used the database itself would wait for it: up to ten seconds while a server is unreachable. The load
/// balancer would have given up by then.
package final class DatabaseReadiness: Sendable {
    /// The pause between two checks.
    package static let interval: Duration = .seconds(2)
    /// The time limit of one check: a longer one counts as failed.
    package static let timeout: Duration = .seconds(3)

    private struct State {
        var problem: String? = "not_checked"
        var checkedAt: BootInstant?
        var lastSuccess: BootInstant?
    }

    private let store: any GrantStore
    private let time: any TimeSource
    private let state = Mutex(State())

    package init(store: any GrantStore, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Checks periodically until the task is cancelled.
    package func run() async {
        while !Task.isCancelled {
            await check()
            do {
                try await time.sleep(for: Self.interval)
            } catch {
                return
            }
        }
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

    /// The code of the database's problem; `nil` if results can be stored.
    package var problem: String? {
        let now = time.sinceBoot
        return state.withLock { state in
            guard let checkedAt = state.checkedAt else { return state.problem }
            return now - checkedAt > Self.interval + Self.timeout ? "no_answer" : state.problem
        }
    }

    /// The time since the last successful check; `nil` if there was none.
    package var sinceLastSuccess: Duration? {
        let now = time.sinceBoot
        return state.withLock { state in state.lastSuccess.map { now - $0 } }
    }
}
