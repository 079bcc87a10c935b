import Base
import Storage

/// The decisions of the engine, as a value: events come in as calls, and the actions to execute are returned.
///
/// Each event is handled in one synchronous call, and every decision reads the state as it is then. So an event that
/// arrives while a call of the store is under way needs no guard: for example, a stop during a claim makes the event
/// ``claimed(_:for:leasesEnd:)`` release the leases. An actor with these properties would need such a guard after each
/// `await`, and a forgotten one sent a request during a stop. ``RefreshEngine`` reports the events and executes the
/// actions.
struct RefreshEngineState: Sendable {
    var configuration: EngineConfiguration
    /// The coming part of the due index.
    var window = DueWindow()
    /// The pace, health and queue of each client id.
    var gates: [String: ClientGate] = [:]
    /// The grants in all queues.
    var queued: Set<GrantID> = []
    /// The grants in flight, from just before their claim until their result is committed.
    var slots: [GrantID: InFlightSlot] = [:]
    var nextScan: BootInstant
    /// The number of rounds over the clients, which decides which client is served first.
    var rounds: UInt64 = 0
    var claimBackOff: ClaimBackOff
    var takeoverPause: TakeoverPause
    /// The time at which the daemon began to refresh, or `nil` for a command.
    var daemonBeganAt: Timestamp?
    /// The client ids that have grants to refresh, as of the last scan, or `nil` before the first one.
    var clientsInUse: Set<String>?
    var clock = ClockMonitor()
    var reach = EndpointReach()
    /// The clock that all workers share for breakers and paces: its epoch, and how far it is ahead of this machine's
    /// boot clock.
    var sharedClock: (epoch: String, ahead: Duration) = ("", .zero)
    var inFlightLimit: InFlightLimit
    /// This worker's share of the grants (``WorkPartition``).
    var share = WorkPartition.whole
    var isStopping = false

    init(configuration: EngineConfiguration, at instant: BootInstant) {
        self.configuration = configuration
        nextScan = instant
        claimBackOff = ClaimBackOff(at: instant)
        takeoverPause = TakeoverPause(after: RefreshEngine.maximumTimeBetweenWrites, at: instant)
        inFlightLimit = InFlightLimit(maximum: configuration.maximumInFlight)
    }

    /// The facts outside of the engine that decisions depend on.
    struct Conditions {
        var now: Timestamp
        /// The time by this machine's boot clock.
        var instant: BootInstant
        /// `true` while results wait because they cannot be committed.
        var isCommitFailing = false
        /// `false` while the key ring lacks, or might lack, a key with which other workers seal.
        var isKeyRingComplete = true
    }

    /// Changes the highest rate, for example after a reload of the configuration.
    mutating func change(maxRate: Double) {
        configuration.maxRate = maxRate
        updatePace()
    }

    /// Sets this worker's share of the grants and updates its paces, and returns no actions if the share stays the
    /// same.
    mutating func change(share: WorkPartition, at instant: BootInstant) -> [EngineAction] {
        guard share != self.share else { return [] }
        self.share = share
        updatePace()
        // The grants that now belong to this worker are found in the due index.
        return storeChanged(at: instant)
    }

    private mutating func updatePace() {
        for client in gates.keys {
            gates[client]?.pacer.changeMaxRate(configuration.maxRate)
            gates[client]?.pacer.workerCount = share.count
        }
    }

    /// Plans a scan at once, because due times have changed outside of the engine.
    mutating func storeChanged(at instant: BootInstant) -> [EngineAction] {
        nextScan = instant
        return [.wakeLoop]
    }
}

/// The stop: no more work is taken, refreshes in flight end, are cancelled at the deadline, and are abandoned at last.
extension RefreshEngineState {
    /// Takes no more work.
    mutating func beginStop() -> [EngineAction] {
        isStopping = true
        return [.wakeLoop]
    }

    /// Cancels the unanswered requests.
    ///
    /// Their leases are then released.
    func cancelRequests() -> [EngineAction] { slots.values.compactMap(\.cancel).map { .cancel($0) } }

    /// Ends refreshes whose claim, or whose release of a lease, waits for a store that does not respond.
    mutating func abandonRefreshes() -> [EngineAction] { ended(Array(slots.keys), as: .abandoned) }
}

/// This worker's share when several workers refresh the grants of one database.
///
/// Shares are not assigned: each worker derives its own from the reports of all. While their views differ, as after one
/// has started or stopped, a grant might belong to none or to two, and the claim decides. Grants that a worker leaves
/// overdue are taken by any other.
struct WorkPartition: Hashable, Sendable {
    static let whole = WorkPartition(rank: 0, count: 1)

    /// The worker's position among all that refresh, sorted by name.
    let rank: Int
    let count: Int

    /// `true` if this worker is the first to try a grant.
    func owns(_ id: GrantID) -> Bool {
        // The low bits of an id are random and do not affect its home instant, so each worker's share is spread over
        // the whole period.
        id.rawValue % Int64(count) == Int64(rank)
    }
}

extension WorkPartition {
    /// The share of a worker among those that have reported.
    init(of worker: String, among reports: [WorkerReport]) {
        let names = Set(reports.filter(\.isRefreshing).map(\.id)).union([worker]).sorted()
        self.init(rank: names.firstIndex(of: worker) ?? 0, count: names.count)
    }
}

/// The gates of the clients, and the clock that all workers share.
extension RefreshEngineState {
    /// Returns the instant of the clock that all workers share.
    func sharedInstant(at instant: BootInstant) -> BootInstant { instant + sharedClock.ahead }

    mutating func updateSharedClock(_ reading: LeaseTime, at instant: BootInstant) {
        sharedClock = (reading.epoch, reading.instant - instant)
    }

    /// Updates the health of all clients, as stored.
    mutating func updateHealth(_ stored: [String: [UInt8]]) {
        for (client, bytes) in stored { updateHealth(bytes, of: client) }
    }

    /// Updates the health of one client, as stored.
    mutating func updateHealth(_ stored: [UInt8]?, of client: String) {
        updateHealth(ClientHealth(stored: stored, epoch: sharedClock.epoch), of: client)
    }

    mutating func updateHealth(_ health: ClientHealth, of client: String) {
        addGate(of: client)
        gates[client]?.update(health)
    }

    /// Returns requests to a client's pacer that were taken and not sent.
    mutating func refund(_ count: Int, of client: String, takenAt instant: BootInstant) {
        guard count > 0 else { return }
        let instant = sharedInstant(at: instant)
        gates[client]?.pacer.refund(count, at: instant)
    }

    /// The number of refreshes that can be in flight now.
    var maximumInFlight: Int { inFlightLimit.limit(at: configuration.maxRate / Double(share.count)) }

    mutating func addGate(of client: String) {
        guard gates[client] == nil else { return }
        gates[client] = ClientGate(
            maxRate: configuration.maxRate,
            workerCount: share.count,
            health: ClientHealth(epoch: sharedClock.epoch)
        )
        if daemonBeganAt != nil { gates[client]?.firstAnswers = FirstAnswers() }
    }

    /// `true` if the grant must wait because all first grants of its client were refused.
    ///
    /// A token that came after the start cannot be one of a copied database.
    func isHeld(_ grant: Grant, at instant: BootInstant) -> Bool {
        guard gates[grant.clientID]?.firstAnswers?.wait(at: instant) != nil, let daemonBeganAt else { return false }
        return grant.isProven && grant.lastSuccessAt.map { $0 < daemonBeganAt } ?? true
    }

    /// The clients that this worker has seen and that have grants to refresh, sorted by id.
    func clientStatuses(at instant: BootInstant, wallClock: Timestamp) -> [ClientStatus] {
        let shared = sharedInstant(at: instant)
        let used = gates.filter { clientsInUse?.contains($0.key) ?? true }
        return used.sorted { $0.key < $1.key }.map { client, gate in
            ClientStatus(id: client, health: gate.health, pacer: gate.pacer, at: shared, wallClock: wallClock)
        }
    }
}

/// The limits of one client id in this process, its health as last read, and the queue of its due grants.
struct ClientGate: Sendable {
    var pacer: Pacer
    private(set) var health: ClientHealth
    /// The due grants of this client that wait for the breaker and the pacer, the longest overdue first.
    private(set) var queue: [GrantID] = []
    /// The revocations that were claimed while too many were in flight, by their due time.
    var deferredRevocations = DeadlineHeap()
    /// The last claim: its instant, and its round over the clients.
    private(set) var lastClaim: (at: BootInstant, round: UInt64)?
    /// `nil` for a command, which refreshes what it is asked for.
    var firstAnswers: FirstAnswers?
    /// The position up to which this client's part of the due index has been read, or `nil` once all of it
    /// that falls due soon was read.
    var cursor: DueEntry?
    /// The instant at which a healthy grant was last refreshed early because of others that are refused.
    private var witnessAskedAt: BootInstant?

    init(maxRate: Double, workerCount: Int, health: ClientHealth) {
        pacer = Pacer(maxRate: maxRate)
        pacer.workerCount = workerCount
        pacer.limits = health.limits
        self.health = health
    }

    /// `true` if the breaker is closed and the endpoint's last answer was not a failure, as far as this worker knows.
    var isBreakerIdle: Bool { !health.breaker.isOpen && !health.breaker.hasEndpointFailures }

    /// Returns `true`, once a minute, if a healthy grant can be refreshed early.
    mutating func mayAskWitness(at instant: BootInstant) -> Bool {
        guard witnessAskedAt.map({ instant - $0 >= .seconds(60) }) ?? true else { return false }
        witnessAskedAt = instant
        return true
    }

    mutating func update(_ health: ClientHealth) {
        self.health = health
        pacer.limits = health.limits
    }

    mutating func append(_ id: GrantID) { queue.append(id) }

    /// Removes and returns all grants of the queue but the last one.
    mutating func dropAllButLast() -> [GrantID] {
        let dropped = Array(queue.dropLast())
        queue.removeFirst(dropped.count)
        return dropped
    }

    /// Removes and returns the first grants of the queue, for a claim.
    mutating func take(atMost count: Int, at instant: BootInstant, inRound round: UInt64) -> [GrantID] {
        let taken = Array(queue.prefix(count))
        queue.removeFirst(taken.count)
        lastClaim = (instant, round)
        return taken
    }

    /// Returns the rest of the pause after the last claim.
    func pause(_ span: Duration, at instant: BootInstant) -> Duration {
        guard let lastClaim else { return .zero }
        return max(.zero, lastClaim.at + span - instant)
    }
}

/// The first answers about the grants of one client since this worker has started.
///
/// A copy of the database, such as a promoted backup or a snapshot of its volume, looks like the database itself. A
/// worker on a copy sends refresh tokens that the workers on the other one have replaced, and a strict server then ends
/// these grants. The only sign is that proven grants get `invalid_grant` from the first one on. So a worker begins with few
/// requests, and holds the client if all of them are refused.
struct FirstAnswers: Sendable {
    /// The number of requests before the first success, and of refused grants that hold the client.
    static let maximumGrants = 10
    /// The interval at which one grant is tried while the client is held.
    static let retryInterval: Duration = .seconds(300)

    private var refused: Set<GrantID> = []
    /// The time of the next try, or `nil` unless the client is held.
    private var nextTry: BootInstant?
    private var hasSucceeded = false

    /// Returns the number of requests that can be in flight, or `nil` if any number can.
    func maximumInFlight(at instant: BootInstant) -> Int? {
        guard !hasSucceeded else { return nil }
        guard let wait = wait(at: instant) else { return Self.maximumGrants - refused.count }
        return wait == .zero ? 1 : 0
    }

    /// Returns the time until the next try, or `nil` unless the client is held.
    func wait(at instant: BootInstant) -> Duration? { nextTry.map { max(.zero, $0 - instant) } }

    /// Records a success, and returns `true` if it ends a hold.
    mutating func succeed() -> Bool {
        defer { self = FirstAnswers(hasSucceeded: true) }
        return nextTry != nil
    }

    /// Records that a proven grant got `invalid_grant`, and returns `true` if the client is held now.
    ///
    /// A grant that was in doubt before does not count: after a restart in a wave many are refused again.
    mutating func refuse(_ grant: GrantID, wasInDoubt: Bool, at instant: BootInstant) -> Bool {
        guard !hasSucceeded else { return false }
        if !wasInDoubt { refused.insert(grant) }
        guard refused.count >= Self.maximumGrants else { return false }
        nextTry = instant + Self.retryInterval
        return true
    }
}
