import Base
import Storage

/// This worker's share when several workers refresh the grants of one database.
///
/// Shares are not assigned: each worker derives its own from the reports of all. While their views differ, as after one
/// has started or stopped, a grant might belong to none or to two, and the claim decides. Grants that a worker leaves
/// overdue are taken by any other.
struct WorkPartition: Hashable, Sendable {
    static let whole = WorkPartition(rank: 0, count: 1)

    /// The worker's position among all that refresh, sorted by name.
    let rank: Int
    let count: Int

    /// `true` if this worker is the first to try a grant.
    func owns(_ id: GrantID) -> Bool {
        // The low bits of an id are random and do not affect its home instant, so each worker's share is spread over
        // the whole period.
        id.rawValue % Int64(count) == Int64(rank)
    }
}

extension WorkPartition {
    /// The share of a worker among those that have reported.
    init(of worker: String, among reports: [WorkerReport]) {
        let names = Set(reports.filter(\.isRefreshing).map(\.id)).union([worker]).sorted()
        self.init(rank: names.firstIndex(of: worker) ?? 0, count: names.count)
    }
}
