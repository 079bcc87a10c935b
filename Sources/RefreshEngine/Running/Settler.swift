package import Clocks
import Observability
import Scheduler
package import Store

/// What became of one finding once it is durable.
package struct Settled: Sendable {
    package var finding: Finding
    package var ruling: Ruling
    /// The grant as stored; `nil` when it has been deleted meanwhile.
    package var grant: Grant?
    package var health: ClientHealth
    /// Events of other grants that were called back because of this finding.
    package var recalled: [GrantEvent] = []
}

/// Turns findings into stored grants: many in one transaction, none ever dropped.
///
/// While one transaction runs the next findings gather, so the batch is as large as the load asks for. A batch that cannot
/// be stored is tried again until it is, or until the worker gives up at the end of its stop deadline; its grants are not
/// called again before.
package actor Settler {
    private struct Item {
        let finding: Finding
        let reply: CheckedContinuation<Settled?, Never>
    }

    /// How many findings one transaction takes: beyond about a hundred rows it only holds the writer longer.
    private static let batchSize = 100

    private let store: any GrantStore
    private let time: any TimeSource
    private let random: any RandomSource
    private var rules: RefreshRules
    /// A batch this large is worth its commit.
    private static let worthwhileBatch = 50
    /// How long a smaller one waits for the answers that are still on their way.
    private static let gatheringTime: Duration = .milliseconds(5)

    private let backOff = BackOff(first: .milliseconds(500), longest: .seconds(5))
    private let onTrouble: @Sendable (_ error: any Error, _ waiting: Int) -> Void

    private var waiting: [Item] = []
    /// How many flights there were when the last finding came, those that wait here included.
    private var aloft = 0
    /// Whether somebody waits for one of the findings that wait.
    private var isAwaited = false
    /// What the store refused for a reason that does not pass; it comes again when the others have been stored.
    private var aside: [Item] = []
    private var isWriting = false
    private var hasGivenUp = false

    package init(
        store: any GrantStore,
        rules: RefreshRules,
        time: any TimeSource,
        random: any RandomSource,
        onTrouble: @escaping @Sendable (_ error: any Error, _ waiting: Int) -> Void
    ) {
        self.store = store
        self.rules = rules
        self.time = time
        self.random = random
        self.onTrouble = onTrouble
    }

    package func use(_ rules: RefreshRules) {
        self.rules = rules
    }

    /// Stores what a finding means; returns when that is durable, with `nil` only after ``giveUp()``.
    ///
    /// Unless a caller waits for it, a finding may be kept for a moment for others of so many that are `aloft`.
    package func settle(_ finding: Finding, isAwaited: Bool = false, aloft: Int = 0) async -> Settled? {
        guard !hasGivenUp else { return nil }
        self.aloft = aloft
        if isAwaited { self.isAwaited = true }
        return await withCheckedContinuation { reply in
            waiting.append(Item(finding: finding, reply: reply))
            writeSoon()
        }
    }

    private func writeSoon() {
        guard !isWriting else { return }
        isWriting = true
        Task { await writeAll() }
    }

    /// Stops trying: the stop deadline has passed and the store still refuses.
    ///
    /// Whoever waits is answered with `nil`.
    package func giveUp() {
        hasGivenUp = true
        for item in waiting + aside { item.reply.resume(returning: nil) }
        waiting = []
        aside = []
    }

    private func writeAll() async {
        while !waiting.isEmpty {
            if waiting.count < min(Self.worthwhileBatch, aloft), !isAwaited { await pause(Self.gatheringTime) }
            isAwaited = false
            let batch = Array(waiting.prefix(Self.batchSize))
            waiting.removeFirst(batch.count)
            await write(batch)
        }
        isWriting = false
    }

    private func write(_ batch: [Item]) async {
        var failures = 0
        while !hasGivenUp {
            do {
                let settled = try await attempt(batch.map(\.finding))
                for (item, outcome) in zip(batch, settled) { item.reply.resume(returning: outcome) }
                return
            } catch {
                failures += 1
                onTrouble(error, batch.count + waiting.count)
                // One finding that the store cannot take must not keep the others from being stored.
                if !((error as? StoreError)?.mayPass ?? false) {
                    if batch.count > 1 {
                        for item in batch { await write([item]) }
                    } else {
                        for item in batch { setAside(item) }
                    }
                    return
                }
                await pause(backOff.delay(failures: failures, remainingLife: nil, unit: random.nextUnit()))
            }
        }
        for item in batch { item.reply.resume(returning: nil) }
    }

    /// Lets the findings behind this one go first.
    private func setAside(_ item: Item) {
        aside.append(item)
        Task {
            await pause(backOff.longest)
            waiting += aside
            aside = []
            writeSoon()
        }
    }

    private func attempt(_ findings: [Finding]) async throws -> [Settled] {
        let rules = rules
        let now = time.now
        let units = findings.map { _ in random.nextUnit() }
        return try await store.transact { transaction in
            try transaction.willRead(
                grants: findings.map(\.attempt.grant),
                healthOf: Array(Set(findings.map(\.attempt.clientID)))
            )
            var book = HealthBook(transaction: transaction)
            let settled = try zip(findings, units).map { finding, unit in
                let moment = Moment(now: now, instant: transaction.leaseTime.instant, unit: unit)
                return try Self.apply(finding, at: moment, by: rules, in: transaction, book: &book)
            }
            try book.save()
            // Flights resume in any order: each gets its client's health as the whole batch left it.
            return try settled.map { settled in
                var settled = settled
                settled.health = try book.health(of: settled.finding.attempt.clientID)
                return settled
            }
        }
    }

    private static func apply(
        _ finding: Finding,
        at moment: Moment,
        by rules: RefreshRules,
        in transaction: any StoreTransaction,
        book: inout HealthBook
    ) throws -> Settled {
        let client = finding.attempt.clientID
        var health = try book.health(of: client)
        guard var grant = try transaction.grant(finding.attempt.grant) else {
            return Settled(finding: finding, ruling: Ruling(outcome: .void), grant: nil, health: health)
        }
        let ruling = rules.decide(finding, grant: &grant, health: &health, at: moment)
        try transaction.update(grant)
        for event in ruling.events { try transaction.record(event) }
        var settled = Settled(finding: finding, ruling: ruling, grant: grant, health: health)
        if ruling.endsOutage { try transaction.hastenRetries(ofClient: client, dueBy: moment.now) }
        if ruling.recallsWave {
            settled.recalled = try recall(health.window.invalidGrants, except: grant.id, at: moment, in: transaction)
        }
        book.set(health, of: client)
        return settled
    }

    /// Calls back the grants that the answers of a wave disconnected before it could be told from users who left.
    private static func recall(
        _ ids: [GrantID],
        except current: GrantID,
        at moment: Moment,
        in transaction: any StoreTransaction
    ) throws -> [GrantEvent] {
        var recalled: [GrantEvent] = []
        for id in Set(ids) where id != current {
            guard var grant = try transaction.grant(id) else { continue }
            let events = grant.recall(confirmAt: moment.now + RefreshRules.secondOpinionAfter, at: moment.now)
            guard !events.isEmpty else { continue }
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
            recalled += events
        }
        return recalled
    }

    private func pause(_ span: Duration) async {
        do {
            try await Task.sleep(for: span)
        } catch {
            // A cancelled wait only makes the next try come sooner.
        }
    }
}

/// The health of the clients that one transaction touches, each read and written once.
struct HealthBook {
    private let transaction: any StoreTransaction
    private var pages: [String: ClientHealth] = [:]
    private var stored: [String: ClientHealth] = [:]

    init(transaction: any StoreTransaction) {
        self.transaction = transaction
    }

    mutating func health(of client: String) throws -> ClientHealth {
        if let page = pages[client] { return page }
        let bytes = try transaction.clientHealth(client)
        let health = ClientHealth(stored: bytes, epoch: transaction.leaseTime.epoch)
        pages[client] = health
        stored[client] = health
        return health
    }

    mutating func set(_ health: ClientHealth, of client: String) {
        pages[client] = health
    }

    func save() throws {
        for (client, health) in pages where stored[client] != health {
            try transaction.setClientHealth(health.stored, of: client)
        }
    }
}
