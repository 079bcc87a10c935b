package import Clocks
package import Observability
package import RefreshEngine
package import Secrets
package import Store
import WorkerConfiguration

/// Reports to the other workers, through the store, that this process is alive and which keys it holds.
///
/// Every process that seals tokens reports: a key is put to use only when all of them hold it, and retired only when
/// none seals with it.
package struct WorkerHeartbeat: Sendable {
    /// The interval of reports; a report is valid for several times as long.
    package static let interval: Duration = .seconds(5)

    let store: any GrantStore
    let ring: ReloadableKeyRing
    let workerName: String
    let diagnostics: DiagnosticLog
    /// Raises alarms for the store and the key ring; `nil` in commands, which end if their ring does not fit.
    let log: EngineLog?
    /// Receives its share of the grants; `nil` in processes that do not refresh due grants.
    let engine: RefreshEngine?
    private let watch: KeyRingMonitor

    package init(
        store: any GrantStore,
        ring: ReloadableKeyRing,
        workerName: String,
        diagnostics: DiagnosticLog,
        log: EngineLog? = nil,
        engine: RefreshEngine? = nil
    ) {
        self.store = store
        self.ring = ring
        self.workerName = workerName
        self.diagnostics = diagnostics
        self.engine = engine
        self.log = log
        watch = KeyRingMonitor(store: store, ring: ring, worker: workerName)
    }

    /// Reads the ring again, compares it with those of others, and reports.
    ///
    /// A ring that cannot be read or does not fit is not adopted: the ring in memory stays in use, and the report lists
    /// its keys.
    package func report() async throws {
        do {
            try await watch.followFile()
        } catch let error as KeyRingFileError {
            diagnostics.warning("the key ring cannot be read again; the keys in memory stay", ["error": "\(error)"])
        }
        if let refusal = ring.refusal { raise(.keyRingRefused, refusal) }
        var obstacle = try await watch.prove()
        try standBy(obstacle)
        var reports = try await report(isStandingBy: obstacle != nil)
        if obstacle == nil {
            obstacle = try await watch.compare(with: reports)
            // Reports again, so that the workers that share the grants know immediately.
            if obstacle != nil { reports = try await report(isStandingBy: true) }
        }
        try standBy(obstacle)
        await engine?.takeShare(among: reports)
    }

    private func report(isStandingBy: Bool) async throws -> [WorkerReport] {
        let keys = ring.current
        return try await store.report(
            WorkerReport(
                id: workerName,
                keyIDs: keys.keyIDs,
                sealingKeyID: keys.sealingKeyID,
                isRefreshing: engine != nil && !isStandingBy
            )
        )
    }

    /// Stops or resumes refreshing, according to the key ring.
    private func standBy(_ obstacle: String?) throws {
        let was = ring.standsBy
        ring.standsBy = obstacle
        if let obstacle {
            guard log != nil else { throw CommandFailure(.configuration, obstacle) }
            raise(.keyRingLacksKeys, obstacle)
        } else if was != nil {
            diagnostics.notice("the key ring holds every key again; this worker refreshes")
        }
    }

    private func raise(_ kind: AlarmKind, _ text: String) {
        guard let log else { return diagnostics.error("the key ring does not fit", ["reason": text]) }
        log.keyRingTrouble(kind, text)
    }

    /// Reports until cancelled, and calls `onTurn` after each try.
    ///
    /// It is the most regular user of the database, so it reports its loss and its return.
    package func run(by time: any TimeSource, onTurn: @Sendable () -> Void) async {
        var standing = DatabaseAvailability()
        await PeriodicTask.beat(every: Self.interval, by: time) {
            do {
                try await report()
                if standing.succeeded() { diagnostics.notice("the database can be used again") }
            } catch {
                engine?.note(error, waiting: 0)
                let isNews = standing.failed(with: (error as? StoreError)?.code)
                if isNews {
                    diagnostics.error("the database cannot be used", ["error": "\(error)"])
                } else {
                    diagnostics.debug("presence", ["error": "\(error)"])
                }
            }
            raiseIncidents()
            onTurn()
        }
    }

    /// Raises an alarm for each incident of the store since the last call.
    private func raiseIncidents() {
        guard let log else { return }
        for incident in store.takeIncidents() { log.incident(incident) }
    }

    package func leave() async {
        do {
            try await store.forgetWorker(workerName)
        } catch {
            diagnostics.debug("presence", ["error": "\(error)"])
        }
    }
}

/// Repeats an action until its task is cancelled.
enum PeriodicTask {
    static func beat(
        every interval: Duration,
        by time: any TimeSource,
        immediately: Bool = true,
        _ action: () async -> Void
    ) async {
        if immediately { await action() }
        while !Task.isCancelled {
            do {
                try await time.sleep(for: interval)
            } catch {
                return
            }
            await action()
        }
    }
}
