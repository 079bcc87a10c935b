import Base
import Storage

/// The part of the due index that is in memory: a heap of the grants that fall due soon, each with its client.
struct DueWindow: Sendable {
    private var heap = DeadlineHeap()
    private var clients: [GrantID: String] = [:]

    var count: Int { heap.count }
    /// The earliest due time.
    var firstDueAt: Timestamp? { heap.first?.deadline }

    mutating func set(_ id: GrantID, of client: String, dueAt: Timestamp) {
        clients[id] = client
        heap.set(id.rawValue, deadline: dueAt)
    }

    /// The client of the grant that falls due first.
    var firstClient: String? { heap.first.flatMap { clients[GrantID(rawValue: $0.key)] } }

    /// Removes and returns the first grant that is due.
    mutating func popDue(at now: Timestamp) -> (id: GrantID, client: String)? {
        guard let entry = heap.popDue(at: now) else { return nil }
        let id = GrantID(rawValue: entry.key)
        guard let client = clients.removeValue(forKey: id) else {
            preconditionFailure("a grant in the heap without a client")
        }
        return (id, client)
    }

    mutating func removeAll() { self = DueWindow() }
}
