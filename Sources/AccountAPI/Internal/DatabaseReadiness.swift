package import Clocks
package import Store
private import Synchronization

/// The last known answer to whether results can be stored, kept current in the background.
///
/// A probe that asked the database itself would wait as long as the database takes: ten seconds while a server is away,
/// when the load balancer has already given up.
package final class DatabaseReadiness: Sendable {
    /// The pause between two checks.
    package static let interval: Duration = .seconds(2)
    /// The limit of one check; without an answer by then, the check counts as failed.
    package static let patience: Duration = .seconds(3)

    private struct Knowledge {
        var trouble: String? = "not_checked"
        var checkedAt: BootInstant?
        var lastSuccess: BootInstant?
    }

    private let store: any GrantStore
    private let time: any TimeSource
    private let knowledge = Mutex(Knowledge())

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
        let trouble: String?
        do {
            try await store.checkUsable()
            trouble = nil
        } catch let error as StoreError {
            trouble = error.code.rawValue
        } catch {
            trouble = "unknown"
        }
        let now = time.sinceBoot
        knowledge.withLock { knowledge in
            knowledge.trouble = trouble
            knowledge.checkedAt = now
            if trouble == nil { knowledge.lastSuccess = now }
        }
    }

    /// The code of the database's problem; `nil` if results can be stored.
    package var trouble: String? {
        let now = time.sinceBoot
        return knowledge.withLock { knowledge in
            guard let checkedAt = knowledge.checkedAt else { return knowledge.trouble }
            return now - checkedAt > Self.interval + Self.patience ? "no_answer" : knowledge.trouble
        }
    }

    /// The time since the last successful check; `nil` if there was none.
    package var sinceLastSuccess: Duration? {
        let now = time.sinceBoot
        return knowledge.withLock { knowledge in knowledge.lastSuccess.map { now - $0 } }
    }
}
