package import Base
package import Crypto
package import GoogleOAuth
package import Storage
package import Telemetry

/// Keeps grants fresh: scans the due index, claims due grants, calls Google, and stores what the rules decide.
///
/// All lasting state is in the store, so the engine can die at any instant. ``RefreshEngineState`` decides. This actor
/// reports events to it, such as an answer of the store, and executes the actions that it returns.
package actor RefreshEngine {
    let store: any Store
    let time: any TimeSource
    let random: any RandomSource
    let dispatcher: RefreshDispatcher
    let log: EngineLog
    var state: RefreshEngineState

    /// Wakes the loop for another iteration.
    var wakeLoop: @Sendable () -> Void = {}
    /// Reports that the loop is alive, after each call of the store that it waited for.
    var reportProgress: @Sendable () -> Void = {}
    /// The result so far of a pass.
    ///
    /// A task group that collects results keeps each finished task until its end: 6 MB for 60,000 grants.
    var passSummary = PassSummary()
    /// The failure to find all due grants.
    var passFailure: (any Error)?
    /// The passes that wait until a refresh ends.
    var slotWaiters: [CheckedContinuation<Void, Never>] = []
    /// The tasks that wait until nothing is in flight.
    var idleWaiters: [CheckedContinuation<Void, Never>] = []
    private let spill: (any ResultSpill)?
    /// The errors after which the store must not be used any more, because the database was moved or replaced.
    package nonisolated let fatalStoreErrors: AsyncStream<StoreError>
    private nonisolated let fatalStoreErrorContinuation: AsyncStream<StoreError>.Continuation
    /// The task of each client that makes grants due which its last outage left in back-off.
    var outageRetries: [String: Task<Void, Never>] = [:]
    /// The task that makes a healthy grant due because another one is refused, or `nil` before the first.
    var healthyGrantSearch: Task<Void, Never>?

    /// Stores the results of refreshes.
    lazy var committer = ResultCommitter(
        store: store,
        rules: RefreshRules(maxRate: configuration.maxRate),
        time: time,
        random: random,
        spill: spill,
        read: { [dispatcher] received, claim throws(CryptoError) in
            try RefreshResult(of: claim, reading: received, sealingWith: dispatcher.vault)
        },
        onFailure: { [weak self] error, waiting in self?.reportStoreFailure(error, waiting: waiting) },
        deliver: { [weak self] batch, storedIn in await self?.delivered(batch, storedIn: storedIn) }
    )

    package init(
        store: any Store,
        endpoint: any Google,
        vault: TokenVault,
        configuration: EngineConfiguration,
        time: any TimeSource,
        random: any RandomSource,
        log: EngineLog,
        spill: (any ResultSpill)? = nil
    ) {
        self.store = store
        self.time = time
        self.random = random
        self.log = log
        self.spill = spill
        (fatalStoreErrors, fatalStoreErrorContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
        // The dispatcher has them: a copy here would keep secrets that a reload replaces.
        var withoutSecrets = configuration
        withoutSecrets.clientSecrets = [:]
        state = RefreshEngineState(configuration: withoutSecrets, at: time.sinceBoot)
        dispatcher = RefreshDispatcher(
            endpoint: endpoint,
            vault: vault,
            time: time,
            leaseNeededToSend: configuration.leaseNeededToSend,
            clientSecrets: ClientSecrets(configuration.clientSecrets)
        )
    }

    var configuration: EngineConfiguration { state.configuration }

    /// The key ring, which says whether this worker can refresh.
    package nonisolated var keyRing: ReloadableKeyRing { dispatcher.vault.ring }
    nonisolated var isInStandby: Bool { keyRing.standbyReason != nil }

    /// The number of refreshes in flight, from just before their claim until their result is committed.
    package var inFlight: Int { state.slots.count }
    /// `true` if this worker gets no answers from the token endpoint while others do, and leaves the grants to them.
    package var leavesGrantsToOthers: Bool { state.leavesGrantsToOthers }
    /// The number of grants in memory that are not due yet.
    package var waiting: Int { state.window.count }
    /// The client ids that this worker has seen, sorted by name.
    package var clientStatuses: [ClientStatus] { state.clientStatuses(at: time.sinceBoot, wallClock: time.now) }
    /// The time for which results could not be stored, or `nil` while they can.
    package var failingToStoreFor: Duration? { committer.failingFor }
    /// The times that the database took to store batches of results.
    package var commitDurations: DurationBuckets { committer.durations }
    /// The time for which grants could not be claimed, or `nil` while they can.
    package var failingToClaimFor: Duration? { state.claimBackOff.failingFor(at: time.sinceBoot) }
    /// `true` if the last claim or the last commit failed.
    package var isStoreFailing: Bool { state.claimBackOff.failures > 0 || committer.isCommitFailing }
    /// `true` while answers wait that could not be sealed.
    package var isSealingFailing: Bool { get async { await committer.hasUnsealedAnswers } }

    /// The facts that decisions depend on, as they are now.
    var conditions: RefreshEngineState.Conditions {
        RefreshEngineState.Conditions(
            now: time.now,
            instant: time.sinceBoot,
            isCommitFailing: committer.isCommitFailing,
            isKeyRingComplete: keyRing.isComplete
        )
    }

    /// Changes the highest rate, for example after a reload of the configuration.
    package func change(maxRate: Double) async {
        state.change(maxRate: maxRate)
        await committer.use(RefreshRules(maxRate: maxRate))
    }

    /// Replaces the secrets that the next requests are sent with, for example after a reload of the configuration.
    package nonisolated func change(clientSecrets: [String: Secret]) {
        dispatcher.clientSecrets.replace(with: clientSecrets)
    }

    /// Returns the secret of a confidential client, as the next request is sent with it.
    package nonisolated func clientSecret(of clientID: String) -> Secret? {
        dispatcher.clientSecrets[clientID]?.secret
    }

    /// Updates this worker's share of the grants, and its pace for each client, from the reports of all workers.
    package func updateShare(among reports: [WorkerReport]) {
        let share = WorkPartition(of: configuration.workerName, among: reports)
        execute(state.change(share: share, at: time.sinceBoot))
    }

    /// Reads the due index at once, because another part of this process has changed due times.
    package func storeChanged() { execute(state.storeChanged(at: time.sinceBoot)) }

    /// The alarms whose cause was seen in the last hour and has not ended.
    package nonisolated var currentAlarms: [CurrentAlarm] { log.currentAlarms }

    /// Tells the engine that it belongs to a daemon, which has waited for the store since this instant.
    package func daemonBegins(waitingSince instant: BootInstant) {
        state.takeoverPause.waited(since: instant)
        if store.isSharedByWorkers { state.takeoverPause.joined(at: time.sinceBoot) }
        state.daemonBeganAt = time.now
    }

    /// Reports an error of the store, or of the spill file.
    package nonisolated func reportStoreFailure(_ error: any Error, waiting: Int) {
        log.reportStoreFailure(error, waiting: waiting)
        if let error = error as? StoreError, error.endsUse { fatalStoreErrorContinuation.yield(error) }
    }
}
