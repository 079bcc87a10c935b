import Base
import Storage

/// The decisions of the engine, as a value: events come in as calls, and the actions to execute are returned.
///
/// Each event is handled in one synchronous call, and every decision reads the state as it is then. So an event that
/// arrives while a call of the store is under way needs no guard: for example, a stop during a claim makes the event
/// ``claimed(_:for:leasesEnd:)`` release the leases. ``RefreshEngine`` reports the events and executes the actions.
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
        // A scan reaches the store in each interval. Within a third of a lease, others have renewed theirs.
        takeoverPause = TakeoverPause(after: configuration.scanInterval + Lease.span / 3, at: instant)
        inFlightLimit = InFlightLimit(maximum: configuration.maximumInFlight)
    }

    /// The facts outside of the engine that decisions depend on.
    struct Conditions {
        var now: Timestamp
        /// The time by this machine's boot clock.
        var instant: BootInstant
        /// `true` while results wait because they cannot be committed.
        var isCommitFailing = false
        /// `false` while the key ring lacks, or may lack, a key with which other workers seal.
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

/// One effect that ``RefreshEngineState`` asks for.
enum EngineAction: Sendable {
    /// Runs another iteration of the loop.
    case wakeLoop
    /// Sends the requests of claimed grants.
    case send([InFlightRefresh])
    /// Cancels a request.
    case cancel(@Sendable () -> Void)
    /// Releases leases in the store, and then reports them as released with this end.
    case release([GrantID: Int64], end: RefreshCompletion)
    /// Wakes the callers that wait for a refresh.
    case complete(CompletionSignal, RefreshCompletion)
    /// Logs refreshes whose results are committed.
    case logRefreshes([FinishedRefresh])
    case logBreaker(Breaker.Change, client: String)
    /// Logs that a client is held because its first grants were refused, or that this has ended.
    case logHold(client: String, isHeld: Bool)
    case logPace(client: String, ceiling: Double, paused: Duration, reason: String)
    /// Makes the grants of a client due that an outage left in back-off.
    case expediteRetries(client: String)
    /// Refreshes a healthy grant of a client early, to see if the client is at fault.
    case askWitness(client: String)
    /// Updates the committer's number of refreshes in flight.
    case expectResults(inFlight: Int)
    /// Continues the tasks that wait until nothing is in flight, such as a stop.
    case reportIdle
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
    func cancelRequests() -> [EngineAction] {
        slots.values.compactMap(\.cancel).map { .cancel($0) }
    }

    /// Ends refreshes whose claim, or whose release of a lease, waits for a store that does not respond.
    mutating func abandonRefreshes() -> [EngineAction] { ended(Array(slots.keys), as: .abandoned) }
}

/// This worker's share when several workers refresh the grants of one database.
///
/// Shares are not assigned: each worker derives its own from the reports of all. While their views differ, as after one
/// has started or stopped, a grant may belong to none or to two, and the claim decides. Grants that a worker leaves
/// overdue are taken by any other.
struct WorkPartition: Hashable, Sendable {
    static let whole = WorkPartition(rank: 0, count: 1)

    /// The worker's position among all that refresh, sorted by name.
    let rank: Int
    let count: Int

    private init(rank: Int, count: Int) {
        self.rank = rank
        self.count = count
    }

    /// The share of a worker among those that have reported.
    init(of worker: String, among reports: [WorkerReport]) {
        let names = Set(reports.filter(\.isRefreshing).map(\.id)).union([worker]).sorted()
        self.init(rank: names.firstIndex(of: worker) ?? 0, count: names.count)
    }

    /// `true` if this worker is the first to try a grant.
    func owns(_ id: GrantID) -> Bool {
        // The low bits of an id are random and do not affect its home instant, so each worker's share is spread over
        // the whole period.
        id.rawValue % Int64(count) == Int64(rank)
    }
}
