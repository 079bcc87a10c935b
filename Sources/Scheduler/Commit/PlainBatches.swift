import Base
import Storage

/// Decides which batches can skip the shared row of the client's health.
///
/// Updating that row would make all workers wait for each other.
///
/// These are batches of successes only, while the breaker is closed and the endpoint does not fail. A success does not
/// depend on the health, and successes can be added to it later in any order. Everything else decides by the health, so
/// it is stored with it, and so are the successes of the same batch: the order of its answers counts.
struct PlainBatches: Sendable {
    /// The longest time between two readings of a client's health while the worker has answers for it.
    ///
    /// With each reading the worker adds what is uncounted, and learns what others have found out about the client.
    static let maximumTimeWithoutHealth: Duration = .seconds(2)

    private var healthReadAt: [String: BootInstant] = [:]

    /// Records that the health of these clients was read, and what was uncounted added to it.
    mutating func healthWasRead(of clients: Set<String>, at instant: BootInstant) {
        for client in clients { healthReadAt[client] = instant }
    }

    /// Returns the decisions about a batch, in the same order, or `nil` if it must be stored with the health of its
    /// clients.
    func decide(
        _ batch: [Refresh],
        by rules: RefreshRules,
        at now: Timestamp,
        instant: BootInstant
    ) -> [StoredDecision]? {
        guard batch.allSatisfy({ isOrdinary($0, at: instant) }) else { return nil }
        guard Set(batch.map(\.grant.id)).count == batch.count else { return nil }
        var decisions: [StoredDecision] = []
        decisions.reserveCapacity(batch.count)
        for refresh in batch {
            guard let decision = Self.decide(refresh, by: rules, at: now, instant: instant) else { return nil }
            decisions.append(decision)
        }
        return decisions
    }

    private func isOrdinary(_ refresh: Refresh, at instant: BootInstant) -> Bool {
        guard case .granted = refresh.result.answer, !refresh.needsHealth else { return false }
        guard let readAt = healthReadAt[refresh.grant.clientID] else { return false }
        return instant - readAt < Self.maximumTimeWithoutHealth
    }

    /// Decides by the claimed grant: the store takes the decision only if the grant is still the same.
    private static func decide(
        _ refresh: Refresh,
        by rules: RefreshRules,
        at now: Timestamp,
        instant: BootInstant
    ) -> StoredDecision? {
        let claimed = refresh.grant
        // A success reads nothing of the health. What it would change is added when the success is counted.
        let decision = rules.decide(
            DecisionContext(
                result: refresh.result,
                grant: claimed,
                health: ClientHealth(epoch: ""),
                now: now,
                instant: instant,
                jitter: 0
            )
        )
        guard decision.isRefreshed, decision.events.isEmpty, decision.lostScopes.isEmpty,
            let grant = decision.grant, grant.lease == nil, grant.state == claimed.state,
            grant.clientID == claimed.clientID, grant.owner == claimed.owner
        else { return nil }
        return StoredDecision(decision, isPlain: true)
    }
}
