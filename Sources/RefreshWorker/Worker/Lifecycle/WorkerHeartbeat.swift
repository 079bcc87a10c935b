import Base
import Crypto
import Scheduler
import Status
import Storage
import Telemetry

/// Reports to the other workers, through the store, that this process is alive and which keys it holds.
///
/// Every process that seals tokens reports: a key is put to use only when all of them hold it, and retired only when
/// none seals with it.
struct WorkerHeartbeat: Sendable {
    /// The interval of reports. A report is valid for several times as long.
    static let interval: Duration = .seconds(5)
    /// Rare, because each worker writes the same row.
    static let activityInterval: Duration = .seconds(60)

    let store: any Store
    let ring: ReloadableKeyRing
    let workerName: String
    let diagnostics: DiagnosticLog
    /// Raises alarms for the store and the key ring, or is `nil` in commands, which end if their ring does not fit.
    let log: EngineLog?
    /// Receives its share of the grants, or is `nil` in processes that do not refresh due grants.
    let engine: RefreshEngine?
    private let keyRingMonitor: KeyRingMonitor

    init(
        store: any Store,
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
        self.log = log
        self.engine = engine
        keyRingMonitor = KeyRingMonitor(store: store, ring: ring, worker: workerName)
    }

    /// Reads the ring again, compares it with those of others, and reports to the workers.
    ///
    /// A ring that cannot be read or does not fit is not adopted: the ring in memory stays in use, and the report lists
    /// its keys.
    func report() async throws {
        do {
            try await keyRingMonitor.reloadFile()
            ring.fileProblem = nil
        } catch let error as FileError {
            ring.rejection = nil
            ring.fileProblem =
                "\(error.descriptionWhileInUse). The worker continues with the keys in memory; a restart would fail"
        }
        updateAlarm(.keyFileUnreadable, problem: ring.fileProblem)
        updateAlarm(.keyRingRefused, problem: ring.rejection)
        var obstacle = try await keyRingMonitor.check()
        try standBy(obstacle)
        var reports = try await exchangeReports(isStandingBy: obstacle != nil)
        if obstacle == nil {
            obstacle = try await keyRingMonitor.compare(with: reports)
            // Reports again, so that the workers that share the grants know immediately.
            if obstacle != nil { reports = try await exchangeReports(isStandingBy: true) }
        }
        try standBy(obstacle)
        await engine?.updateShare(among: reports)
    }

    /// Stores this worker's report, and returns those of all live workers.
    private func exchangeReports(isStandingBy: Bool) async throws -> [WorkerReport] {
        let keys = ring.current
        let leavesGrantsToOthers = await engine?.leavesGrantsToOthers ?? true
        return try await store.report(
            WorkerReport(
                id: workerName,
                keyIDs: keys.keyIDs,
                sealingKeyID: keys.sealingKeyID,
                isRefreshing: !leavesGrantsToOthers && !isStandingBy
            )
        )
    }

    /// Stops or resumes refreshing, according to the key ring.
    private func standBy(_ obstacle: String?) throws {
        let previous = ring.standbyReason
        ring.standbyReason = obstacle
        if let obstacle {
            guard log != nil else { throw CommandError(.configuration, obstacle) }
            raise(.keyRingLacksKeys, obstacle)
        } else if previous != nil {
            log?.end([.keyRingLacksKeys])
            diagnostics.notice("the key ring holds every key again; this worker refreshes")
        }
    }

    /// Raises an alarm, or ends it if its problem is `nil`.
    private func updateAlarm(_ kind: AlarmKind, problem: String?) {
        if let problem {
            raise(kind, problem)
        } else {
            log?.end([kind])
        }
    }

    private func raise(_ kind: AlarmKind, _ text: String) {
        guard let log else { return diagnostics.error("the key file cannot be used", ["reason": text]) }
        log.raise(kind, text)
    }

    /// Reports until cancelled, and calls `onReport` after each attempt.
    ///
    /// It uses the database more regularly than any other part, so it logs its loss and its return.
    func run(by time: any TimeSource, onReport: @Sendable () -> Void) async {
        var availability = DatabaseAvailability()
        var published: [CurrentAlarm] = []
        var activityAt = time.sinceBoot + Self.activityInterval
        await time.repeat(every: Self.interval) {
            do {
                try await report()
                await endAlarms()
                try await publishAlarms(&published, at: time.now)
                if time.sinceBoot >= activityAt {
                    activityAt = time.sinceBoot + Self.activityInterval
                    try await publishActivity(at: time.now)
                }
                if availability.succeeded() { diagnostics.notice("the database can be used again") }
            } catch {
                engine?.reportStoreFailure(error, waiting: 0)
                let isNew = availability.failed(with: (error as? StoreError)?.code)
                if isNew {
                    diagnostics.error("the database cannot be used", ["error": "\(error)"])
                } else {
                    diagnostics.debug("heartbeat", ["error": "\(error)"])
                }
            }
            raiseIncidents()
            onReport()
        }
    }

    /// Ends the alarms about a database that has just taken a report.
    private func endAlarms() async {
        guard let log, let engine else { return }
        log.end([.databaseTablesLost])
        if await !engine.isStoreFailing { log.end([.storeFailing]) }
        if await !engine.isSealingFailing { log.end([.sealingFailed]) }
    }

    /// Stores the current alarms, so that the command `status` sees them.
    private func publishAlarms(_ published: inout [CurrentAlarm], at now: Timestamp) async throws {
        guard let alarms = log?.currentAlarms, PublishedAlarms.mustPublish(alarms, after: published) else { return }
        try await PublishedAlarms.publish(alarms, of: workerName, in: store, at: now)
        published = alarms
    }

    /// Adds the refreshes since the last call to those of all workers, for the status page.
    private func publishActivity(at now: Timestamp) async throws {
        guard let counters = log?.counters else { return }
        let activity = counters.takeActivity()
        var isStored = activity.isEmpty
        defer { if !isStored { counters.restore(activity) } }
        if !isStored { isStored = try await activity.publish(in: store, at: now) }
    }

    /// Raises an alarm for each incident of the store since the last call.
    private func raiseIncidents() {
        guard let log else { return }
        for incident in store.takeIncidents() { log.incident(incident) }
    }

    /// Ends the reports, and stores the last refreshes of a worker for the status page.
    func leave(at now: Timestamp? = nil) async {
        do {
            try await store.removeWorker(workerName)
            if let now { try await publishActivity(at: now) }
        } catch {
            diagnostics.debug("heartbeat", ["error": "\(error)"])
        }
    }
}
