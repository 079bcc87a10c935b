/// Keeps answers that the store does not take, so that the next process finds them.
package protocol ResultSpill: Sendable {
    /// Writes results durably outside the store, sealed; throws if that fails.
    func save(_ results: [RefreshResult]) async throws
    /// Frees the disk space that is reserved for commits; returns `false` if there is none left to free.
    func freeReserve() async -> Bool
}
