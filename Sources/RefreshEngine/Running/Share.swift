package import Store

/// Which part of the work is this worker's, when several that live refresh the grants of one store.
///
/// Nobody hands parts out: each worker finds its own from the reports of all. While they do not agree yet, as when one has just
/// come or gone, a grant is nobody's or two workers', and the claim decides: what its worker leaves lying any other takes.
package struct Share: Hashable, Sendable {
    package static let whole = Share(rank: 0, count: 1)

    /// The worker's place among all that refresh, in the order of their names.
    let rank: Int
    package let count: Int

    private init(rank: Int, count: Int) {
        self.rank = rank
        self.count = count
    }

    /// The share of a worker among those that have reported.
    package init(of worker: String, among reports: [WorkerReport]) {
        let names = Set(reports.filter(\.isRefreshing).map(\.id)).union([worker]).sorted()
        self.init(rank: names.firstIndex(of: worker) ?? 0, count: names.count)
    }

    /// Whether this worker is the first to try a grant.
    func owns(_ id: GrantID) -> Bool {
        // The low bits of an id are random and have no part in its phase, so each worker's part is spread over all instants.
        id.rawValue % Int64(count) == Int64(rank)
    }
}
