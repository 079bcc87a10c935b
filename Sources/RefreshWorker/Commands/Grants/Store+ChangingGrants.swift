import Base
import Storage

extension Store {
    /// Changes the grants that fit, a page at a time, and counts the outcomes.
    ///
    /// The transaction that changes a grant reads it again: a worker or the app might have changed it since.
    func changeGrants<Outcome: Hashable & Sendable>(
        in state: GrantState? = nil,
        by time: any TimeSource,
        where fits: @escaping @Sendable (Grant) -> Bool,
        counting counts: inout [Outcome: Int],
        _ change: @escaping @Sendable (Grant, any StoreTransaction, Timestamp) throws -> Outcome
    ) async throws {
        for try await page in GrantPages(store: self, state: state) {
            let (ids, now) = (page.filter(fits).map(\.id), time.now)
            guard !ids.isEmpty else { continue }
            let outcomes = try await transact { transaction -> [Outcome] in
                try transaction.willRead(grants: ids, healthOf: [])
                return try ids.compactMap { id in
                    guard let grant = try transaction.grant(id), fits(grant) else { return nil }
                    return try change(grant, transaction, now)
                }
            }
            for outcome in outcomes { counts[outcome, default: 0] += 1 }
        }
    }
}
