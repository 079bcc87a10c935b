import Clocks
import Store

extension GrantStatistics {
    /// Returns one line for `systemctl status`.
    func sentence(at now: Timestamp) -> String {
        let connected = (byState[.active] ?? 0) + (byState[.retrying] ?? 0)
        let overdue = oldestDueAt.map { ", the oldest for \(Int((now - $0).inSeconds)) s" } ?? ""
        return "\(connected) of \(grants) grants connected, \(due) due\(overdue)"
    }
}
