import Base
import Storage

/// The stop: no more work is taken, refreshes in flight end, are cancelled at the deadline, and are abandoned at last.
extension RefreshEngineState {
    /// Takes no more work.
    mutating func beginStop() -> [EngineAction] {
        isStopping = true
        return [.wakeLoop]
    }

    /// Cancels the unanswered requests.
    ///
    /// Leases of requests that were not sent are then released. The others stay for a while, because their outcome is
    /// unknown.
    func cancelRequests() -> [EngineAction] { refreshes.map { .cancel($0) } }

    /// Ends refreshes whose claim, or whose release of a lease, waits for a store that does not respond.
    mutating func abandonRefreshes() -> [EngineAction] { freeSlots(of: Array(slots.keys), as: .abandoned) }
}
