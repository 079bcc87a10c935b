package import Base
package import Storage
import Telemetry

/// Stores results that a former process could not store.
///
/// The same rules decide about them as about an answer that comes late. Storing a result twice has no further effect.
package struct ResultRecovery: Sendable {
    /// The outcome of a recovery.
    package struct Summary: Hashable, Sendable {
        /// Results that are now stored, or were stored before.
        package var stored = 0
        /// Results that no longer count: their grants have been reconnected or ended since.
        package var outdated = 0
        /// Results of grants that are not in the store.
        package var unknown = 0

        package init() {}

        static func += (sum: inout Summary, other: Summary) {
            sum.stored += other.stored
            sum.outdated += other.outdated
            sum.unknown += other.unknown
        }
    }

    private static let batchSize = 100

    private let store: any Store
    private let time: any TimeSource
    private let random: any RandomSource
    private let rules: RefreshRules

    package init(into store: any Store, maxRate: Double, time: any TimeSource, random: any RandomSource) {
        self.store = store
        self.time = time
        self.random = random
        rules = RefreshRules(maxRate: maxRate)
    }

    package func recover(_ results: [RefreshResult]) async throws -> Summary {
        var summary = Summary()
        var rest = results[...]
        while !rest.isEmpty {
            summary += try await store(Array(rest.prefix(Self.batchSize)))
            rest = rest.dropFirst(Self.batchSize)
        }
        return summary
    }

    private func store(_ results: [RefreshResult]) async throws -> Summary {
        let rules = rules
        let now = time.now
        let units = results.map { _ in random.nextUnit() }
        return try await store.transact { transaction in
            try transaction.willRead(grants: results.map(\.attempt.grant), healthOf: [])
            var summary = Summary()
            for (result, unit) in zip(results, units) {
                guard let grant = try transaction.grant(for: result) else {
                    summary.unknown += 1
                    continue
                }
                let context = DecisionContext(
                    result: result,
                    grant: grant,
                    // An old answer shows nothing about the client as it is now.
                    health: ClientHealth(epoch: transaction.leaseTime.epoch),
                    now: now,
                    instant: transaction.leaseTime.instant,
                    unit: unit
                )
                let decision = rules.decide(context)
                try transaction.store(decision, at: now)
                switch decision.outcome {
                case .void: summary.outdated += 1
                default: summary.stored += 1
                }
            }
            return summary
        }
    }
}

/// Keeps answers that the store does not take, so that the next process finds them.
package protocol ResultSpill: Sendable {
    /// Writes results durably outside the store, sealed, and throws if that fails.
    func save(_ results: [RefreshResult]) async throws
    /// Frees the disk space that is reserved for commits, and returns `false` if there is none left to free.
    func freeReserve() async -> Bool
}

/// The reason why results could not be written to, or read from, the spill file.
package struct SpillFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The failure, its place, and the advice to the operator.
    var message: String

    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }
}

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
