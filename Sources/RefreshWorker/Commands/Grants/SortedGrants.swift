import Base
import Storage

/// The ids of the first grants in an order.
///
/// It keeps a short key for each grant instead of the grant, so that the memory for millions of grants stays small.
struct SortedGrants {
    /// The order of a list.
    ///
    /// Without one, a list is in the order of the grants' ids.
    enum Order: String, CaseIterable {
        case due
        case user
        case since
    }

    /// What the order needs of a grant.
    struct Entry {
        var time: Timestamp?
        var text = ""
        let id: GrantID
    }

    /// Entries without a time come last, and equal ones in the order of their ids.
    private static func precedes(_ one: Entry, _ other: Entry) -> Bool {
        switch (one.time, other.time) {
        case (let first?, let second?) where first != second: return first < second
        case (_?, nil): return true
        case (nil, _?): return false
        default: break
        }
        if one.text != other.text { return one.text.utf8.lexicographicallyPrecedes(other.text.utf8) }
        return one.id < other.id
    }

    let order: Order
    let limit: Int?
    private(set) var entries: [Entry] = []

    mutating func add(_ grant: Grant) {
        switch order {
        case .due: entries.append(Entry(time: grant.dueAt, id: grant.id))
        case .since: entries.append(Entry(time: grant.since, id: grant.id))
        case .user: entries.append(Entry(text: grant.userID, id: grant.id))
        }
        // Sorted once for as many additions as are kept, so that each costs little.
        if let limit, entries.count >= max(1000, 2 * limit) { truncate(to: limit) }
    }

    /// Returns the ids in their order.
    mutating func finish() -> [GrantID] {
        truncate(to: limit ?? entries.count)
        return entries.map(\.id)
    }

    private mutating func truncate(to count: Int) {
        entries.sort(by: Self.precedes)
        entries = Array(entries.prefix(count))
    }
}
