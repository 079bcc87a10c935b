import Base
import Storage

/// The decisions of the engine, as a value: events come in as calls, and the actions to execute are returned.
///
/// Each event is handled in one synchronous call, and every decision reads the state as it is then. So an event that
/// arrives while a call of the store is under way needs no guard: for example, a stop during a claim makes the event
/// ``claimed(_:for:leasesEnd:)`` release the leases. In an actor each `await` would need a check of what has changed
/// meanwhile. ``RefreshEngine`` reports the events and executes the actions.
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
    var sharedClock = SharedClock()
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

    /// The clock that all workers share for breakers and paces.
    struct SharedClock {
        var epoch = ""
        /// How far it is ahead of this machine's boot clock.
        var ahead: Duration = .zero
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
