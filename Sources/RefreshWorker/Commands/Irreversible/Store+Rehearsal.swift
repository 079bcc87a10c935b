import Storage

/// The outcome of a change that is rolled back.
private struct Rehearsal<Outcome: Sendable>: Error {
    let outcome: Outcome
}

extension Store {
    /// Returns the outcome of a transaction that is rolled back.
    func rehearse<Outcome: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome
    ) async throws -> Outcome {
        do {
            return try await transact { throw Rehearsal(outcome: try body($0)) }
        } catch let rehearsal as Rehearsal<Outcome> {
            return rehearsal.outcome
        }
    }
}
