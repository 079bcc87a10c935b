/// An import that reads and prepares a batch while the one before it is stored.
protocol OverlappingImport: RecordImport where Outcome: Sendable {
    /// The batch before the one that is read.
    var storing: StoringBatch<Imported, Outcome>? { get set }

    /// Prepares a batch, and returns what stores it in one transaction.
    func prepare(_ batch: [Imported]) throws -> @Sendable () async throws -> [Outcome]
}

/// A batch that is being stored.
struct StoringBatch<Imported, Outcome: Sendable> {
    let items: [ImportReading<Imported>]
    let outcomes: Task<[Outcome], any Error>
}

extension OverlappingImport {
    func store(_ batch: [Imported]) async throws -> [Outcome] { try await prepare(batch)() }

    /// Begins to store the batch as soon as the one before it is stored.
    mutating func storeBatch() async throws {
        let store: @Sendable () async throws -> [Outcome]
        do {
            store = try prepare(batch.imported())
        } catch {
            // The batch before is good.
            try await finishStoring()
            throw error
        }
        try await finishStoring()
        storing = StoringBatch(items: batch, outcomes: Task { try await store() })
        batch = []
    }

    mutating func finishStoring() async throws {
        guard let storing else { return }
        self.storing = nil
        count(try await storing.outcomes.value, of: storing.items)
    }
}
