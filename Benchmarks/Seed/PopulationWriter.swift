import Base
import Crypto
import Storage

/// Writes the grants of a population, or only those that are due soon, in the order of their ids.
struct PopulationWriter {
    private static let batchSize = 20_000

    let store: any Store
    let vault: TokenVault
    /// The number of grants in the population.
    let population: Int
    /// The time until which a worker has refreshed everything that was due.
    let workedUntil: Timestamp
    /// Grants that are due later are omitted; `nil` omits none.
    let horizon: Timestamp?
    /// The key that all refresh tokens are bound to; `nil` binds none.
    let bindingKeyID: KeyID?

    /// Returns the number of grants written.
    func run() async throws -> Int {
        let ids = randomIDs()
        var written = 0
        var next = 0
        var prepared = try await grants(of: ids, from: &next)
        while !prepared.isEmpty {
            let batch = prepared
            // Sealing and storing run in parallel.
            async let stored: Void = store.transact { transaction in
                for grant in batch {
                    try transaction.insert(grant)
                    try transaction.record(Self.connection(of: grant))
                }
            }
            prepared = try await grants(of: ids, from: &next)
            try await stored
            written += batch.count
        }
        return written
    }

    /// Returns sorted ids as a random source would make them; always the same ones.
    private func randomIDs() -> [GrantID] {
        let random = SeededRandom(seed: UInt64(population))
        return (0..<population).map { _ in GrantID.random(from: random) }.sorted()
    }

    private func grants(of ids: [GrantID], from next: inout Int) async throws -> [Grant] {
        var grants: [Grant] = []
        while next < ids.count, grants.count < Self.batchSize {
            var sample = SampleGrant(number: next, id: ids[next], workedUntil: workedUntil)
            next += 1
            if let horizon, sample.dueAt > horizon { continue }
            sample.bindingKeyID = bindingKeyID
            grants.append(try sample.stored(vault: vault))
        }
        return grants
    }

    private static func connection(of grant: Grant) -> GrantEvent {
        GrantEvent(of: grant, kind: .connected, from: nil, at: grant.createdAt)
    }
}
