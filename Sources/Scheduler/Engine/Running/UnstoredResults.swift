/// Answers with tokens that a stopping worker could not store.
package struct UnstoredResults: Sendable, Hashable {
    /// The number of results in the spill file.
    package var spilled: Int
    /// The number of results that were kept nowhere: if the server rotates refresh tokens, these grants are lost.
    package var lost: Int

    package init(spilled: Int = 0, lost: Int = 0) {
        self.spilled = spilled
        self.lost = lost
    }
}
