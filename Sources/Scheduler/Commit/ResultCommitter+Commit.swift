import Base
import Storage
import Telemetry

/// The decisions about a batch, and their storing.
extension ResultCommitter {
    /// Decides about the results of refreshes, stores the decisions, and returns them in the same order.
    ///
    /// Plain refreshes are stored without the health of their clients, if the store can do that. Those whose grants
    /// have changed since their claim are stored with all others, in one transaction.
    func commit(_ batch: [Refresh]) async throws -> [StoredDecision] {
        let now = time.now
        var decisions = try await commitPlain(batch, at: now)
        let rest = batch.indices.filter { decisions[$0] == nil }
        if !rest.isEmpty {
            let stored = try await commitWithHealth(rest.map { batch[$0] }, at: now)
            for (index, decision) in zip(rest, stored) { decisions[index] = decision }
        }
        return decisions.compactMap(\.self)
    }

    /// Stores plain refreshes, and returns the decision about each refresh of the batch that it has stored.
    private func commitPlain(_ batch: [Refresh], at now: Timestamp) async throws -> [StoredDecision?] {
        let none = [StoredDecision?](repeating: nil, count: batch.count)
        guard store.isSharedByWorkers,
            let decisions = plainBatches.decide(batch, by: rules, at: now, instant: time.sinceBoot)
        else { return none }
        let refreshes = zip(batch, decisions).compactMap { PlainRefresh(of: $0, $1.decision) }
        let stored = try await store.storePlain(refreshes, at: now)
        return zip(batch, decisions).map { stored.contains($0.grant.id) ? $1 : nil }
    }

    /// Decides and stores in one transaction, which also reads and writes the health of the clients.
    private func commitWithHealth(_ batch: [Refresh], at now: Timestamp) async throws -> [StoredDecision] {
        let rules = rules
        let jitters = batch.map { _ in random.nextUnit() }
        let clients = Set(batch.map(\.grant.clientID))
        let decisions = try await store.storeResults { storeTransaction in
            try storeTransaction.willRead(grants: batch.map(\.grant.id), healthOf: Array(clients))
            var transaction = CommitTransaction(transaction: storeTransaction, rules: rules, now: now)
            var decisions: [StoredDecision] = []
            decisions.reserveCapacity(batch.count)
            for (refresh, jitter) in zip(batch, jitters) {
                decisions.append(try transaction.store(refresh, jitter: jitter))
            }
            try transaction.healths.save()
            return decisions
        }
        plainBatches.healthWasRead(of: clients, at: time.sinceBoot)
        return decisions
    }
}

extension PlainRefresh {
    /// The refresh as it is stored with a plain batch.
    fileprivate init?(of refresh: Refresh, _ decision: RefreshDecision) {
        guard let grant = decision.grant else { return nil }
        self.init(
            claimed: refresh.grant,
            refreshed: grant,
            secretFingerprint: refresh.result.secretFingerprint.rawValue
        )
    }
}

/// The decisions of one transaction, each made and stored in turn.
private struct CommitTransaction {
    let transaction: any StoreTransaction
    let rules: RefreshRules
    let now: Timestamp
    var healths: ClientHealthCache

    init(transaction: any StoreTransaction, rules: RefreshRules, now: Timestamp) {
        self.transaction = transaction
        self.rules = rules
        self.now = now
        healths = ClientHealthCache(transaction: transaction, now: now)
    }

    /// Decides about a result, and stores the decision.
    ///
    /// The grant has seldom changed since its claim. So the rules first decide about the claimed grant, and the store
    /// takes the decision only if the stored grant is the same. Otherwise they decide about the stored one.
    mutating func store(_ refresh: Refresh, jitter: Double) throws -> StoredDecision {
        let claimed = refresh.grant
        let client = claimed.clientID
        let clientHealth = try healths.health(of: client)
        var decision = decide(refresh, about: claimed, clientHealth, jitter: jitter)
        if try !transaction.store(decision, replacing: claimed, at: now) {
            guard let grant = try transaction.grant(for: refresh.result) else {
                return StoredDecision(decisionWithoutGrant(refresh, clientHealth), isGrantGone: true)
            }
            decision = decide(refresh, about: grant, clientHealth, jitter: jitter)
            try transaction.store(decision, about: grant, at: now)
        }
        if decision.endsAccount { try GrantDisconnection.makeGrantsDue(endedWith: claimed, in: transaction, at: now) }
        healths.set(decision.health, of: client)
        let recalled = decision.recalls.isEmpty ? [] : try recall(decision.recalls, except: claimed.id)
        if let effect = healths.takeEffect(of: client) { decision.effect.add(effect) }
        return StoredDecision(consume decision, recalled: recalled)
    }

    private func decide(
        _ refresh: Refresh,
        about grant: Grant,
        _ health: ClientHealth,
        jitter: Double
    ) -> RefreshDecision {
        rules.decide(
            DecisionContext(
                result: refresh.result,
                grant: grant,
                health: health,
                now: now,
                instant: transaction.leaseTime.instant,
                jitter: jitter
            )
        )
    }

    /// Returns the decision about a grant that is not in the database any more.
    private func decisionWithoutGrant(_ refresh: Refresh, _ health: ClientHealth) -> RefreshDecision {
        var decision = RefreshDecision(outcome: .void, grant: nil, health: health)
        guard refresh.result.answer.containsTokens else { return decision }
        decision.alarm = RefreshDecision.Alarm(
            kind: .rotatedTokensDropped,
            text: """
                grant \(refresh.grant.id) is not in the database any more, as after the restore of a backup: its new \
                tokens are kept in a spill file (docs/operate.md#spill-files)
                """
        )
        return decision
    }

    /// Recalls the grants that the answers of a wave ended before the wave was recognised.
    private func recall(_ ids: [GrantID], except current: GrantID) throws -> [GrantEvent] {
        var recalled: [GrantEvent] = []
        for id in Set(ids) where id != current {
            guard var grant = try transaction.grant(id) else { continue }
            let events = grant.recall(confirmAt: now + RefreshRules.recalledConfirmationAfter, at: now)
            guard !events.isEmpty else { continue }
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
            recalled += events
        }
        return recalled
    }
}
