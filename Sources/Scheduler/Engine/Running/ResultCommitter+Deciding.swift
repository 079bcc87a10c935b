import Base
import Storage
import Telemetry

/// The decision about one result, inside the store's transaction.
extension ResultCommitter {
    /// Decides about a result, and stores the decision.
    ///
    /// The grant has seldom changed since its claim. So the rules first decide about the claimed grant, and the store
    /// takes the decision only if the stored grant is the same. Otherwise they decide about the stored one.
    static func apply(
        _ entry: ReadResult,
        at now: Timestamp,
        unit: Double,
        by rules: RefreshRules,
        in transaction: any StoreTransaction,
        cache: inout ClientHealthCache
    ) throws -> CommittedResult {
        let result = entry.report.result
        let client = result.attempt.clientID
        let health = try cache.health(of: client)
        let instant = transaction.leaseTime.instant
        let decide = { grant in
            rules.decide(
                DecisionContext(result: result, grant: grant, health: health, now: now, instant: instant, unit: unit)
            )
        }
        let claimed = entry.refresh.grant
        var decision = decide(claimed)
        if try !transaction.store(decision, replacing: claimed, at: now) {
            guard let grant = try transaction.grant(for: result) else {
                let decision = RefreshDecision(
                    .void,
                    grant: nil,
                    health: health,
                    alarm: result.answer.containsTokens ? Self.missingGrantAlarm(result.attempt) : nil
                )
                return CommittedResult(result: result, decision: decision)
            }
            decision = decide(grant)
            try transaction.store(decision, at: now)
        }
        if decision.endsAccount { try GrantEnding.probeGrants(endedWith: claimed, in: transaction, at: now) }
        cache.set(decision.health, of: client)
        let recalled =
            decision.recalls.isEmpty
            ? [] : try recall(decision.recalls, except: claimed.id, at: now, in: transaction)
        if let effect = cache.takeEffect(of: client) { decision.add(effect) }
        return CommittedResult(result: result, decision: consume decision, recalled: recalled)
    }

    private static func missingGrantAlarm(_ attempt: RefreshAttempt) -> Alarm {
        Alarm(
            kind: .rotatedTokensDropped,
            clientID: attempt.clientID,
            text: """
                grant \(attempt.grant) is not in the database any more, as after the restore of a backup: its new tokens \
                are kept in a spill file (docs/spill-file.md)
                """
        )
    }

    /// Recalls the grants that the answers of a wave ended before the wave was recognised.
    private static func recall(
        _ ids: [GrantID],
        except current: GrantID,
        at now: Timestamp,
        in transaction: any StoreTransaction
    ) throws -> [GrantEvent] {
        var recalled: [GrantEvent] = []
        for id in Set(ids) where id != current {
            guard var grant = try transaction.grant(id) else { continue }
            let events = grant.recall(confirmAt: now + RefreshRules.firstConfirmationAfter, at: now)
            guard !events.isEmpty else { continue }
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
            recalled += events
        }
        return recalled
    }
}
