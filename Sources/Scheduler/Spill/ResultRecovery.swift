package import Base
package import Storage

/// The outcome of a recovery: a former process could not store these results, and left them in a spill file.
///
/// The same rules decide about them as about a response that comes late. Storing a result twice has no further effect.
package struct ResultRecovery: Hashable, Sendable {
    /// Results that are now stored, or were stored before.
    package var stored = 0
    /// Results that no longer count: their grants have been reconnected or ended since.
    package var outdated = 0
    /// Results of grants that are not in the store.
    package var unknown = 0
    /// Tokens of codes that contradict the stored data, and are not stored.
    package var contradicting = 0

    private static let batchSize = 100

    package init() {}

    /// Stores results, many in one transaction.
    package static func recover(
        _ results: [RefreshResult],
        into store: any Store,
        maxRate: Double,
        time: any TimeSource,
        random: any RandomSource
    ) async throws -> ResultRecovery {
        let rules = RefreshRules(maxRate: maxRate)
        var recovery = ResultRecovery()
        var rest = results[...]
        while !rest.isEmpty {
            let batch = rest.prefix(batchSize).map { (result: $0, jitter: random.nextUnit()) }
            rest = rest.dropFirst(batchSize)
            let (former, now) = (recovery, time.now)
            recovery = try await store.transact { transaction in
                try transaction.willRead(grants: batch.map(\.result.claim.grant), healthOf: [])
                var recovery = former
                for (result, jitter) in batch {
                    try recovery.store(result, by: rules, at: now, jitter: jitter, in: transaction)
                }
                return recovery
            }
        }
        return recovery
    }

    private mutating func store(
        _ result: RefreshResult,
        by rules: RefreshRules,
        at now: Timestamp,
        jitter: Double,
        in transaction: any StoreTransaction
    ) throws {
        guard let grant = try transaction.grant(for: result) else {
            unknown += 1
            return
        }
        let time = transaction.leaseTime
        // An old response shows nothing about the client as it is now.
        let health = ClientHealth(epoch: time.epoch)
        let decision = rules.decide(
            DecisionContext(
                result: result,
                grant: grant,
                health: health,
                now: now,
                instant: time.instant,
                jitter: jitter
            )
        )
        try transaction.store(decision, about: grant, at: now)
        if decision.isVoid { outdated += 1 } else { stored += 1 }
    }
}
