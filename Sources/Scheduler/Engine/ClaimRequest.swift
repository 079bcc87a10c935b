import Base
import Storage

/// A claim on its way to the store.
///
/// Each of its grants has a slot.
struct ClaimRequest: Sendable {
    var ids: [GrantID]
    /// The time by which the grants must be due, or `nil` for a caller's refresh before that.
    var dueBy: Timestamp?
    /// The grant as a caller had read it: a change by another worker since then counts as done.
    var seen: Grant?

    /// `true` if a caller asks for the refresh, whether it is due or not.
    var isForCaller: Bool { dueBy == nil }

    /// Returns the ids of the grants that the store has not leased. Nearly always it leases all.
    func ids(without leased: [GrantID]) -> Set<GrantID> {
        guard leased.count < ids.count else { return [] }
        return Set(ids).subtracting(leased)
    }
}
