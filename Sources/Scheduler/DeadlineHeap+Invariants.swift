extension DeadlineHeap {
    /// A description of the heap's first fault, or `nil` if it is sound; O(n), for tests.
    package var violation: String? {
        guard nodes.count == entries.count else {
            return "\(entries.count) entries but \(nodes.count) tracked places"
        }
        for (offset, entry) in entries.enumerated() {
            let node = Node(offset: offset)
            guard nodes[entry.key] == node else {
                return "key \(entry.key) is at \(offset) and tracked elsewhere"
            }
            if let parent = node.parent, entry < entries[parent.offset] {
                return "the entry at \(offset) is due before its parent at \(parent.offset)"
            }
        }
        return nil
    }
}
