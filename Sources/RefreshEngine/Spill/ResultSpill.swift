/// Keeps answers that the store does not take where the next process finds them.
package protocol ResultSpill: Sendable {
    /// Writes results durably outside the store, sealed; throws when that fails.
    func save(_ findings: [Finding]) async throws
    /// Frees the disk space that is reserved for commits; returns `false` when there was none left to free.
    func freeReserve() async -> Bool
}
