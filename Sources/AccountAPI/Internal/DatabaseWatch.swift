package import Clocks
package import Store
private import Synchronization

/// The last known answer to whether results can be stored, kept current in the background.
///
/// A probe that asked the database itself would wait as long as the database takes: ten seconds while a server is away, and the
/// load balancer has given up by then.
package final class DatabaseWatch: Sendable {
    /// The pause between two checks.
    package static let interval: Duration = .seconds(2)
    /// A check answers within this time; later its silence counts as a failure.
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

    /// Checks again and again until the task is cancelled.
    package func run() async {
        while !Task.isCancelled {
            await check()
            do {
                try await Task.sleep(for: Self.interval)
            } catch {
                return
            }
        }
    }

    /// Checks once and takes note of the outcome.
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

    /// The code of what is wrong with the database; `nil` if results can be stored.
    package var trouble: String? {
        let now = time.sinceBoot
        return knowledge.withLock { knowledge in
            guard let checkedAt = knowledge.checkedAt else { return knowledge.trouble }
            return now - checkedAt > Self.interval + Self.patience ? "no_answer" : knowledge.trouble
        }
    }

    /// The time since the database could be used last; `nil` if it never could.
    package var sinceLastSuccess: Duration? {
        let now = time.sinceBoot
        return knowledge.withLock { knowledge in knowledge.lastSuccess.map { now - $0 } }
    }
}
