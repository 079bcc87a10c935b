/// Keeps answers that the store does not take, so that the next process finds them.
package protocol ResultSpill: Sendable {
    /// Writes results durably outside the store, sealed, and throws a `FileError` if that fails.
    func save(_ results: [RefreshResult]) async throws
    /// Frees the disk space that is reserved for commits, and returns `false` if there is none left to free.
    func freeReserve() async -> Bool
}

/// Answers with tokens that a stopping worker could not store.
package struct UnstoredResults: Sendable, Hashable {
    package static let none = UnstoredResults()

    /// The number of results in the spill file.
    package var spilled = 0
    /// The number of results that were kept nowhere: if the server rotates refresh tokens, these grants are lost.
    package var lost = 0
}
