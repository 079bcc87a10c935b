import Base
import Scheduler
import Status
import Storage

extension StatusSnapshot {
    /// A snapshot without a finding.
    static let well = StatusSnapshot(at: Timestamp(milliseconds: 0))

    /// A snapshot of grants alone.
    static func of(_ grants: GrantStatistics, at now: Timestamp) -> StatusSnapshot {
        var snapshot = StatusSnapshot(at: now)
        snapshot.grants = grants
        return snapshot
    }
}

extension Breaker.State {
    /// The state after a refusal of the client with this code.
    static func open(_ code: String) -> Breaker.State {
        let now = BootInstant(milliseconds: 0)
        return .open(reason: .clientFault(code), since: now, nextProbe: now, probes: 0)
    }
}
