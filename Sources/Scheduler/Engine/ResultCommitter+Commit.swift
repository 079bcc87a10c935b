import Base
import Storage
import Telemetry

/// The decisions about a batch, and their storing.
extension ResultCommitter {
    /// Decides about results and stores the decisions.
    ///
    /// Plain refreshes are stored without the health of their clients, if the store can do that. Those whose grants
    /// have changed since their claim are stored with all others, in one transaction.
    func commit(_ batch: [ReadResult]) async throws -> [FinishedRefresh] {
        let (rules, now) = (rules, time.now)
        var finished: [FinishedRefresh] = []
        var rest = batch
        if store.storesPlainRefreshes,
            let plain = plainBatches.decide(batch, by: rules, at: now, time.sinceBoot)
        {
            let stored = try await store.storePlain(plain.compactMap(\.toStore), at: now)
            finished = plain.filter { stored.contains($0.refresh.grant.id) }
            rest.removeAll { stored.contains($0.refresh.grant.id) }
        }
        guard !rest.isEmpty else { return finished }
        let remaining = rest
        let jitters = remaining.map { _ in random.nextUnit() }
        let clients = Set(remaining.map(\.refresh.grant.clientID))
        finished += try await store.storeResults { transaction in
            try transaction.willRead(grants: remaining.map(\.refresh.grant.id), healthOf: Array(clients))
            var cache = ClientHealthCache(transaction: transaction, now: now)
            var finished: [FinishedRefresh] = []
            finished.reserveCapacity(remaining.count)
            for ((refresh, result), jitter) in zip(remaining, jitters) {
                finished.append(
                    try Self.store(result, of: refresh, at: now, jitter: jitter, by: rules, in: transaction, &cache)
                )
            }
            try cache.save()
            return finished
        }
        plainBatches.healthWasRead(of: clients, at: time.sinceBoot)
        return finished
    }

    /// Decides about a result inside the store's transaction, and stores the decision.
    ///
    /// The grant has seldom changed since its claim. So the rules first decide about the claimed grant, and the store
    /// takes the decision only if the stored grant is the same. Otherwise they decide about the stored one.
    private static func store(
        _ result: RefreshResult,
        of refresh: InFlightRefresh,
        at now: Timestamp,
        jitter: Double,
        by rules: RefreshRules,
        in transaction: any StoreTransaction,
        _ cache: inout ClientHealthCache
    ) throws -> FinishedRefresh {
        let client = refresh.grant.clientID
        let health = try cache.health(of: client)
        let instant = transaction.leaseTime.instant
        let decide = { grant in
            rules.decide(
                DecisionContext(
                    result: result,
                    grant: grant,
                    health: health,
                    now: now,
                    instant: instant,
                    jitter: jitter
                )
            )
        }
        let claimed = refresh.grant
        var decision = decide(claimed)
        if try !transaction.store(decision, replacing: claimed, at: now) {
            guard let grant = try transaction.grant(for: result) else {
                var decision = RefreshDecision(outcome: .void, grant: nil, health: health)
                if result.answer.containsTokens {
                    decision.alarm = RefreshDecision.Alarm(
                        kind: .rotatedTokensDropped,
                        text: """
                            grant \(claimed.id) is not in the database any more, as after the restore of a backup: its new tokens \
                            are kept in a spill file (docs/operate.md#spill-files)
                            """
                    )
                }
                return FinishedRefresh(refresh, result, decision: decision)
            }
            decision = decide(grant)
            try transaction.store(decision, about: grant, at: now)
        }
        if decision.endsAccount { try GrantEnding.probeGrants(endedWith: claimed, in: transaction, at: now) }
        cache.set(decision.health, of: client)
        let recalled =
            decision.recalls.isEmpty ? [] : try recall(decision.recalls, except: claimed.id, at: now, in: transaction)
        if let effect = cache.takeEffect(of: client) { decision.effect.add(effect) }
        return FinishedRefresh(refresh, result, decision: consume decision, recalled: recalled)
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

/// The health of the clients that one transaction touches, each read and written once.
struct ClientHealthCache {
    /// A type of its own: Swift copies a tuple of such values by calls of the runtime.
    struct Entry {
        let client: String
        let stored: ClientHealth
        var current: ClientHealth
        /// The consequences of plain refreshes that were added, until they are taken.
        var effect: ClientEffect?
    }

    let transaction: any StoreTransaction
    let now: Timestamp
    /// A batch has few clients, and most often one: a list is searched faster than a dictionary.
    private(set) var entries: [Entry] = []

    /// Returns a client's health, with all plain refreshes that were stored so far.
    mutating func health(of client: String) throws -> ClientHealth {
        if let index = index(of: client) { return entries[index].current }
        let time = transaction.leaseTime
        var health = ClientHealth(stored: try transaction.clientHealth(client), epoch: time.epoch)
        let stored = health
        let successes = try transaction.takeUncountedSuccesses(of: client)
        let effect = successes.isEmpty ? nil : health.add(successes, at: now, instant: time.instant)
        entries.append(Entry(client: client, stored: stored, current: health, effect: effect))
        return health
    }

    /// Replaces a client's health that was read before.
    mutating func set(_ health: ClientHealth, of client: String) {
        guard let index = index(of: client) else { return assertionFailure("a client's health was not read") }
        entries[index].current = health
    }

    /// Returns the consequences that the plain refreshes of a client had, once.
    mutating func takeEffect(of client: String) -> ClientEffect? {
        guard let index = index(of: client), let effect = entries[index].effect else { return nil }
        entries[index].effect = nil
        return effect
    }

    func save() throws {
        for entry in entries where entry.stored != entry.current {
            try transaction.setClientHealth(entry.current.stored, of: entry.client)
        }
    }

    private func index(of client: String) -> Int? {
        for index in entries.indices where entries[index].client == client { return index }
        return nil
    }
}

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

    /// Returns the decisions about a batch, or `nil` if it must be stored with the health of its clients.
    func decide(
        _ batch: [ResultCommitter.ReadResult],
        by rules: RefreshRules,
        at now: Timestamp,
        _ instant: BootInstant
    ) -> [FinishedRefresh]? {
        guard batch.allSatisfy({ isOrdinary($0.refresh, $0.result, at: instant) }) else { return nil }
        guard Set(batch.map(\.result.attempt.grant)).count == batch.count else { return nil }
        var finished: [FinishedRefresh] = []
        finished.reserveCapacity(batch.count)
        for (refresh, result) in batch {
            guard let one = Self.decide(refresh, result, by: rules, at: now, instant) else { return nil }
            finished.append(one)
        }
        return finished
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
    ) -> FinishedRefresh? {
        let claimed = refresh.grant
        // A success reads nothing of the health. What it would change is added when the success is counted.
        let health = ClientHealth(epoch: "")
        let decision = rules.decide(
            DecisionContext(result: result, grant: claimed, health: health, now: now, instant: instant, jitter: 0)
        )
        guard decision.isRefreshed, decision.events.isEmpty, decision.lostScopes.isEmpty,
            let grant = decision.grant, grant.lease == nil, grant.state == claimed.state,
            grant.clientID == claimed.clientID, grant.owner == claimed.owner
        else { return nil }
        return FinishedRefresh(refresh, result, decision: decision, isPlain: true)
    }
}

extension FinishedRefresh {
    /// The refresh as it is stored with a plain batch.
    var toStore: PlainRefresh? {
        guard let result, let grant = decision?.grant else { return nil }
        return PlainRefresh(claimed: refresh.grant, refreshed: grant, clientSecret: result.clientSecret.rawValue)
    }
}
