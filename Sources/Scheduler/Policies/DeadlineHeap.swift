package import Base

/// The coming deadlines, earliest first, one for each key.
///
/// A min-heap in an array. The position of each key is tracked, so that a deadline can be moved or removed in O(log n)
/// without a search. It is a concrete type because a generic one is not specialised across modules and ran ten times
/// slower.
package struct DeadlineHeap: Sendable {
    /// A key and its deadline; entries with equal deadlines are ordered by key.
    package struct Entry: Hashable, Comparable, Sendable {
        package let deadline: Timestamp
        let key: Int64

        package static func < (left: Entry, right: Entry) -> Bool {
            left.deadline == right.deadline ? left.key < right.key : left.deadline < right.deadline
        }
    }

    private(set) var entries: [Entry] = []
    private(set) var nodes: [Int64: Node] = [:]

    package init() {}

    var count: Int { entries.count }

    var isEmpty: Bool { entries.isEmpty }

    /// The entry with the earliest deadline; O(1).
    var first: Entry? { entries.first }

    /// Returns the deadline of a key, if it has one; O(1).
    func deadline(of key: Int64) -> Timestamp? {
        nodes[key].map { entries[$0.offset].deadline }
    }

    /// Sets the deadline of a key, replacing a former one; O(log n).
    package mutating func set(_ key: Int64, deadline: Timestamp) {
        let entry = Entry(deadline: deadline, key: key)
        if let node = nodes[key] {
            sift(entry, at: node)
        } else {
            entries.append(entry)
            siftUp(entry, from: Node(offset: entries.count - 1))
        }
    }

    /// Removes a key; returns `true` if it was present; O(log n).
    @discardableResult
    mutating func remove(_ key: Int64) -> Bool {
        guard let node = nodes.removeValue(forKey: key) else { return false }
        let last = entries.removeLast()
        if last.key != key {
            sift(last, at: node)
        }
        return true
    }

    /// Removes and returns the first entry if it is due by `now`; O(log n).
    package mutating func popDue(at now: Timestamp) -> Entry? {
        guard let first, first.deadline <= now else { return nil }
        remove(first.key)
        return first
    }

    /// Fills a hole with an entry, then moves the entry up or down to its position.
    private mutating func sift(_ entry: Entry, at hole: Node) {
        if let parent = hole.parent, entry < entries[parent.offset] {
            siftUp(entry, from: hole)
        } else {
            siftDown(entry, from: hole)
        }
    }

    private mutating func siftUp(_ entry: Entry, from start: Node) {
        var hole = start
        while let parent = hole.parent, entry < entries[parent.offset] {
            place(entries[parent.offset], at: hole)
            hole = parent
        }
        place(entry, at: hole)
    }

    private mutating func siftDown(_ entry: Entry, from start: Node) {
        var hole = start
        while let child = earliestChild(of: hole), entries[child.offset] < entry {
            place(entries[child.offset], at: hole)
            hole = child
        }
        place(entry, at: hole)
    }

    private func earliestChild(of node: Node) -> Node? {
        node.children(in: entries.count).min { entries[$0] < entries[$1] }.map(Node.init(offset:))
    }

    private mutating func place(_ entry: Entry, at node: Node) {
        entries[node.offset] = entry
        nodes[entry.key] = node
    }
}

extension DeadlineHeap {
    /// A description of the heap's first fault, or `nil` if it is sound; O(n), for tests.
    var violation: String? {
        guard nodes.count == entries.count else {
            return "\(entries.count) entries but \(nodes.count) tracked positions"
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

extension DeadlineHeap {
    /// A position in the heap's array, and the arithmetic of the tree in it.
    ///
    /// Four children per node: the tree is half as deep as a binary one, and four siblings fit into 64 bytes, so a
    /// removal touches less memory.
    struct Node: Equatable {
        private static let childrenPerNode = 4

        let offset: Int

        var parent: Node? {
            offset == 0 ? nil : Node(offset: (offset - 1) / Self.childrenPerNode)
        }

        /// Returns the offsets of the node's children in a heap with `count` entries; empty for a leaf.
        func children(in count: Int) -> Range<Int> {
            let first = min(offset * Self.childrenPerNode + 1, count)
            return first..<min(first + Self.childrenPerNode, count)
        }
    }
}
