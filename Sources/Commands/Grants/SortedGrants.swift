import Base
import Storage
import Worker

/// The ids of the first grants in an order.
///
/// It keeps a short key for each grant instead of the grant, so that the memory for millions of grants stays small.
struct SortedGrants {
    private struct Entry {
        let time: Timestamp?
        let text: String
        let id: GrantID

        /// Entries without a time come last; equal ones are in the order of their ids.
        static func precedes(_ one: Self, _ other: Self) -> Bool {
            switch (one.time, other.time) {
            case (let first?, let second?) where first != second: return first < second
            case (_?, nil): return true
            case (nil, _?): return false
            default: break
            }
            if one.text != other.text { return one.text.utf8.lexicographicallyPrecedes(other.text.utf8) }
            return one.id < other.id
        }
    }

    private let order: GrantListOptions.Order
    private let limit: Int?
    private var entries: [Entry] = []

    init(by order: GrantListOptions.Order, limit: Int?) {
        self.order = order
        self.limit = limit
    }

    mutating func add(_ grant: Grant) {
        switch order {
        case .due: entries.append(Entry(time: grant.dueAt, text: "", id: grant.id))
        case .since: entries.append(Entry(time: grant.since, text: "", id: grant.id))
        case .user: entries.append(Entry(time: nil, text: grant.userID, id: grant.id))
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
        entries.sort(by: Entry.precedes)
        entries = Array(entries.prefix(count))
    }
}
