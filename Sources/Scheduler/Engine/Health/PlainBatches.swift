import Base
import Storage
import Telemetry

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

    /// One refresh of a plain batch as it is to be stored, and as it has ended once it is.
    struct Entry {
        let toStore: PlainRefresh
        let finished: FinishedRefresh
    }

    private var healthReadAt: [String: BootInstant] = [:]

    /// Records that the health of these clients was read, and what was uncounted added to it.
    mutating func healthWasRead(of clients: Set<String>, at instant: BootInstant) {
        for client in clients { healthReadAt[client] = instant }
    }

    /// Returns the decisions about a batch, or `nil` if it must be stored with the health of its clients.
    func decide(
        _ batch: [ResultCommitter.ReadResult],
        by rules: RefreshRules,
        at now: Timestamp,
        _ instant: BootInstant
    ) -> [Entry]? {
        guard batch.allSatisfy({ isOrdinary($0.refresh, $0.result, at: instant) }) else { return nil }
        guard Set(batch.map(\.result.attempt.grant)).count == batch.count else { return nil }
        var entries: [Entry] = []
        entries.reserveCapacity(batch.count)
        for (refresh, result) in batch {
            guard let entry = Self.decide(refresh, result, by: rules, at: now, instant) else { return nil }
            entries.append(entry)
        }
        return entries
    }

    private func isOrdinary(_ refresh: InFlightRefresh, _ result: RefreshResult, at instant: BootInstant) -> Bool {
        guard case .granted = result.answer, !refresh.needsHealth else { return false }
        guard let readAt = healthReadAt[refresh.grant.clientID] else { return false }
        return instant - readAt < Self.maximumTimeWithoutHealth
    }

    /// Decides by the claimed grant: the store takes the decision only if the grant is still the same.
    private static func decide(
        _ refresh: InFlightRefresh,
        _ result: RefreshResult,
        by rules: RefreshRules,
        at now: Timestamp,
        _ instant: BootInstant
    ) -> Entry? {
        let claimed = refresh.grant
        // A success reads nothing of the health. What it would change is added when the success is counted.
        let health = ClientHealth(epoch: "")
        let decision = rules.decide(
            DecisionContext(result: result, grant: claimed, health: health, now: now, instant: instant, unit: 0)
        )
        guard decision.outcome == .refreshed, decision.events.isEmpty, decision.lostScopes.isEmpty,
            let grant = decision.grant, grant.lease == nil, grant.state == claimed.state,
            grant.clientID == claimed.clientID, grant.owner == claimed.owner
        else { return nil }
        return Entry(
            toStore: PlainRefresh(claimed: claimed, refreshed: grant, clientSecret: result.clientSecret.rawValue),
            finished: FinishedRefresh(refresh, result, decision: decision, isPlain: true)
        )
    }
}
