extension DeadlineHeap {
    /// A place in the heap's array, and the arithmetic of the tree laid out in it.
    ///
    /// Four children a node: the tree is half as deep as a binary one, and four siblings lie within 64 bytes, so a
    /// removal touches less memory.
    struct Node: Equatable {
        private static let childrenPerNode = 4

        let offset: Int

        var parent: Node? {
            offset == 0 ? nil : Node(offset: (offset - 1) / Self.childrenPerNode)
        }

        /// The offsets of the node's children in a heap of that many entries; empty for a leaf.
        func children(in count: Int) -> Range<Int> {
            let first = min(offset * Self.childrenPerNode + 1, count)
            return first..<min(first + Self.childrenPerNode, count)
        }
    }
}
