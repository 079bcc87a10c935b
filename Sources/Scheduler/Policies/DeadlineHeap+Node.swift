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
