import Base
import Storage

/// A worker that is cut off from the token endpoint leaves the grants to the others.
extension RefreshEngineState {
    /// `true` if this worker gets no answers while others do, and so leaves the grants to them.
    var leavesGrantsToOthers: Bool { reach.isCutOff && share.count > 1 }

    /// Compares this worker's answers with those of the others.
    mutating func updateReach() -> [EngineAction] {
        let lastSuccess = gates.values.compactMap(\.health.provenSuccessAt).max()
        switch reach.update(lastSuccess: lastSuccess) {
        case .lost(let code, let clients):
            // The grants whose requests had no answer are in back-off. Others can refresh them now.
            return [.logReachLost(code: code)] + clients.map { .expediteRetries(client: $0) }
        case .stillLost(let code): return [.logReachLost(code: code)]
        case .restored: return [.logReachRestored, .wakeLoop]
        case nil: return []
        }
    }

    /// Leaves the due grants of a client to others, except the one that fell due last, which others do not have yet.
    ///
    /// Returns the time until that one can be tried, or `nil` while a request is in flight: its end wakes the loop.
    mutating func leaveGrants(of client: String, at now: Timestamp) -> Duration? {
        let left = gates[client]?.dropAllButLast() ?? []
        queued.subtract(left)
        guard slots.isEmpty else { return nil }
        return reach.probeWait(at: now)
    }
}
