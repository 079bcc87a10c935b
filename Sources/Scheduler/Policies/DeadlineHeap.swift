package import Base

/// The coming deadlines, earliest first, one for each key.
///
/// A min-heap in an array with four children per node: it is half as deep as a binary one, and four siblings fit into
/// 64 bytes, so a removal touches less memory. The position of each key is tracked, so that a deadline can be moved or
/// removed in O(log n) without a search. It is a concrete type because a generic one is not specialised across modules
/// and ran ten times slower.
///
///     var deadlines = DeadlineHeap()
///     deadlines.set(7, deadline: noon)
///     deadlines.popDue(at: noon)?.key     // 7
package struct DeadlineHeap: Sendable {
    /// A key and its deadline. Entries with equal deadlines are ordered by key.
    package struct Entry: Hashable, Comparable, Sendable {
        package let deadline: Timestamp
        let key: Int64

        package static func < (left: Entry, right: Entry) -> Bool {
            left.deadline == right.deadline ? left.key < right.key : left.deadline < right.deadline
        }
    }

    private static let childrenPerNode = 4

    private(set) var entries: [Entry] = []
    /// The position of each key's entry.
    private(set) var offsets: [Int64: Int] = [:]

    package init() {}

    var count: Int { entries.count }

    var isEmpty: Bool { entries.isEmpty }

    /// The entry with the earliest deadline, in O(1).
    var first: Entry? { entries.first }

    /// Returns the deadline of a key, if it has one, in O(1).
    func deadline(of key: Int64) -> Timestamp? { offsets[key].map { entries[$0].deadline } }

    /// Sets the deadline of a key, replacing a former one, in O(log n).
    package mutating func set(_ key: Int64, deadline: Timestamp) {
        let entry = Entry(deadline: deadline, key: key)
        if let offset = offsets[key] {
            sift(entry, at: offset)
        } else {
            entries.append(entry)
            siftUp(entry, from: entries.count - 1)
        }
    }

    /// Removes a key, and returns `true` if it was present, in O(log n).
    @discardableResult
    mutating func remove(_ key: Int64) -> Bool {
        guard let offset = offsets.removeValue(forKey: key) else { return false }
        let last = entries.removeLast()
        if last.key != key { sift(last, at: offset) }
        return true
    }

    /// Removes and returns the first entry if it is due by `now`, in O(log n).
    package mutating func popDue(at now: Timestamp) -> Entry? {
        guard let first, first.deadline <= now else { return nil }
        remove(first.key)
        return first
    }

    /// Fills a hole with an entry, then moves the entry up or down to its position.
    private mutating func sift(_ entry: Entry, at hole: Int) {
        if let parent = Self.parent(of: hole), entry < entries[parent] {
            siftUp(entry, from: hole)
        } else {
            siftDown(entry, from: hole)
        }
    }

    private mutating func siftUp(_ entry: Entry, from start: Int) {
        var hole = start
        while let parent = Self.parent(of: hole), entry < entries[parent] {
            place(entries[parent], at: hole)
            hole = parent
        }
        place(entry, at: hole)
    }

    private mutating func siftDown(_ entry: Entry, from start: Int) {
        var hole = start
        while let child = earliestChild(of: hole), entries[child] < entry {
            place(entries[child], at: hole)
            hole = child
        }
        place(entry, at: hole)
    }

    private mutating func place(_ entry: Entry, at offset: Int) {
        entries[offset] = entry
        offsets[entry.key] = offset
    }

    static func parent(of offset: Int) -> Int? { offset == 0 ? nil : (offset - 1) / childrenPerNode }

    private func earliestChild(of offset: Int) -> Int? {
        let first = min(offset * Self.childrenPerNode + 1, entries.count)
        return (first..<min(first + Self.childrenPerNode, entries.count)).min { entries[$0] < entries[$1] }
    }
}
