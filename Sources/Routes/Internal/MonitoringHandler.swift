package import Base
import Crypto
import HTTPServer
package import Scheduler
package import Status
import Storage
package import Telemetry

/// The state of the process for monitors and people: health, readiness, status, metrics and the status page.
///
/// Only the pages for operators contain user ids. ``InternalRoutes`` decides what needs a credential.
package struct MonitoringHandler: Sendable {
    /// Reads a snapshot from the database. `includesSlowParts` is `false` for one that is made often.
    package typealias Observe =
        @Sendable (_ process: ProcessStatus, _ includesSlowParts: Bool) async throws -> StatusSnapshot

    /// The pause between two snapshots in the background: with their own time they are at most five seconds old.
    static let interval: Duration = .seconds(2)
    /// The age of a snapshot above which it says nothing about now: reading the database hangs.
    private static let maximumAge: Duration = .seconds(30)
    /// The same for people, who take the page's heading for what is true now.
    static let maximumAgeOnPage: Duration = .seconds(5)
    /// The time that the page waits for a newer snapshot.
    static let waitOfPage: Duration = .seconds(1)

    private let name: String
    let version: String
    let database: DatabaseReadiness
    let engine: RefreshEngine
    private let observe: Observe
    let lastSnapshot: CachedResult<StatusSnapshot>
    let counters: IntervalCounters
    let log: EngineLog
    let metrics: MetricsLog
    private let phase: Shared<ServingPhase>
    let time: any TimeSource
    private let stalledLoops: @Sendable () -> [String]
    let certificateExpiry: @Sendable () -> Timestamp?

    /// Makes the handler of a worker with this name and version.
    ///
    /// `stalledLoops` returns the worker's loops whose last iteration is too long ago. `certificateExpiry` returns the
    /// expiry of the internal listener's certificate, if any.
    package init(
        name: String,
        version: String,
        database: DatabaseReadiness,
        engine: RefreshEngine,
        counters: IntervalCounters,
        log: EngineLog,
        metrics: MetricsLog,
        phase: Shared<ServingPhase>,
        time: any TimeSource,
        stalledLoops: @escaping @Sendable () -> [String],
        certificateExpiry: @escaping @Sendable () -> Timestamp? = { nil },
        observe: @escaping Observe
    ) {
        self.name = name
        self.version = version
        self.database = database
        self.engine = engine
        self.observe = observe
        lastSnapshot = CachedResult(time: time) { try await observe(ProcessStatus(), false) }
        self.counters = counters
        self.log = log
        self.metrics = metrics
        self.phase = phase
        self.time = time
        self.stalledLoops = stalledLoops
        self.certificateExpiry = certificateExpiry
    }

    /// Returns 200 if the loops of the process run. If they do not, only a restart helps.
    func health() -> ServerResponse {
        let stalled = stalledLoops()
        guard stalled.isEmpty else { return .text("stalled: \(stalled.joined(separator: ", "))\n", status: 503) }
        return .text("ok\n")
    }

    /// Observes the database until the task is cancelled, so that no request has to wait for it.
    package func run() async {
        var isFailing = false
        await time.repeat(every: Self.interval) {
            let error = await refreshSnapshot()
            if let error, !isFailing {
                log.diagnostics.warning("the status cannot be read from the database", ["error": "\(error)"])
            } else if error == nil, isFailing {
                log.diagnostics.notice("the status can be read again")
            }
            isFailing = error != nil
        }
    }

    /// Returns the error without which there would be a new snapshot.
    @discardableResult
    private func refreshSnapshot() async -> (any Error)? {
        do {
            _ = try await lastSnapshot.value()
            return nil
        } catch {
            return error
        }
    }

    /// `true` if requests should be sent to this worker: not while it starts or drains, nor without the database.
    private func isReady(_ process: ProcessStatus) -> Bool {
        guard phase.value == .serving, process.databaseProblem == nil, process.isStoring else { return false }
        return engine.keyRing.standbyReason == nil
    }

    /// Returns 200 if requests should be sent to this worker.
    ///
    /// It does not wait for the database: a probe must not. An outage of Google is shown in the body and does not
    /// count: otherwise the load balancer would remove all workers at once.
    func readiness() async -> ServerResponse {
        let process = await processStatus()
        let clients = await engine.clientStatuses
        let waiting = await engine.waiting
        let snapshot = await latestSnapshot()
        let report = ReadinessReport(
            isReady: isReady(process),
            at: time.now,
            phase: phase.value,
            process: process,
            keyRingProblem: Self.problem(of: engine.keyRing),
            sinceLastSuccess: database.sinceLastSuccess,
            clients: clients,
            waiting: waiting,
            snapshot: snapshot,
            findings: findings(of: process, snapshot: snapshot)
        )
        let status = report.isReady ? 200 : 503
        return .object(status: status, headers: [ServerResponse.noStore]) { report.write(into: &$0) }
    }

    /// Returns the code of the key ring's problem, of which only `lacks_keys` stops refreshes.
    private static func problem(of ring: ReloadableKeyRing) -> String? {
        if ring.standbyReason != nil { return "lacks_keys" }
        if ring.fileProblem != nil { return "file_unreadable" }
        if ring.rejection != nil { return "file_refused" }
        return nil
    }

    /// Returns the readiness for callers without a credential, who do not see the reasons.
    func readinessWithoutDetails() async -> ServerResponse {
        let isReady = isReady(await processStatus())
        return .text(isReady ? "ready\n" : "not ready\n", status: isReady ? 200 : 503)
    }

    /// Returns the output of `refresh-worker status --json`.
    func status() async -> ServerResponse {
        do {
            let snapshot = try await observe(await processStatus(), true)
            return .json(snapshot.json.bytes, headers: [ServerResponse.noStore])
        } catch {
            return ServiceError.storeUnavailable.response
        }
    }

    /// Returns the status page, with the answer to an operator who looked up a user.
    func page(showing lookup: StatusPage.Lookup? = nil) async -> ServerResponse {
        ServerResponse(
            headers: [("Content-Type", "text/html; charset=utf-8")] + Self.pageHeaders,
            body: Array(await statusPage(showing: lookup).html.utf8)
        )
    }

    /// Makes the page from the last snapshot.
    func statusPage(showing lookup: StatusPage.Lookup? = nil) async -> StatusPage {
        let snapshot = await snapshotForPage()
        let process = await processStatus()
        let judged = usable(snapshot, upTo: Self.maximumAgeOnPage)
        var page = StatusPage(
            at: time.now,
            worker: name,
            version: version,
            startedAt: counters.lifetime.startedAt,
            phase: phaseForPeople(process)
        )
        page.findings = findings(of: process, snapshot: judged)
        page.judgedAt = judged?.at ?? page.at
        page.snapshot = snapshot
        // Without the database, the clients as this worker knows them.
        page.clients = if let snapshot { snapshot.clients } else { await engine.clientStatuses }
        page.activity = snapshot?.activity ?? RecentActivity()
        page.activity.add(counters.activity, at: time.now)
        page.services = counters.lifetime.counts.services
        page.changes = log.recentChanges
        page.lookup = lookup
        return page
    }

    /// Waits for the database only if the last snapshot is old, and not for long.
    private func snapshotForPage() async -> StatusSnapshot? {
        let snapshot = await latestSnapshot()
        guard database.problem == nil, isTooOldForPage(snapshot) else { return snapshot }
        await time.wait(atMost: Self.waitOfPage) { await refreshSnapshot() }
        return await latestSnapshot()
    }

    private func isTooOldForPage(_ snapshot: StatusSnapshot?) -> Bool {
        guard let snapshot else { return true }
        return time.now - snapshot.at > Self.maximumAgeOnPage
    }

    private func phaseForPeople(_ process: ProcessStatus) -> String {
        if phase.value == .serving, !isReady(process) { return "not ready" }
        return phase.value.rawValue
    }

    /// Returns the findings about the process as it is now, and about the database as it was read last.
    ///
    /// They are about the process alone if the database cannot be used, or was not read for long. If there is none
    /// then, it returns `nil`, because it is unknown if all is well.
    func findings(of process: ProcessStatus, snapshot: StatusSnapshot?) -> [Finding]? {
        let now = time.now
        if let snapshot = usable(snapshot, upTo: Self.maximumAge) {
            return snapshot.with(process, at: now).findings
        }
        let own = StatusSnapshot(at: now).with(process, at: now).findings
        return own.isEmpty ? nil : own
    }

    /// Returns a snapshot that says something about now, or `nil` without one.
    private func usable(_ snapshot: StatusSnapshot?, upTo maximumAge: Duration) -> StatusSnapshot? {
        guard let snapshot, database.problem == nil else { return nil }
        return time.now - snapshot.at <= maximumAge ? snapshot : nil
    }

    /// Returns the last snapshot, with the clients whose breaker this worker has seen opening since. Nobody should have
    /// to wait for the next snapshot to learn that nothing is sent any more.
    func latestSnapshot() async -> StatusSnapshot? {
        guard var snapshot = await lastSnapshot.latestValue() else { return nil }
        for client in await engine.clientStatuses {
            guard let since = client.breakerSince, since >= snapshot.at else { continue }
            snapshot.clients.removeAll { $0.id == client.id }
            snapshot.clients.append(client)
        }
        snapshot.clients.sort { $0.id < $1.id }
        return snapshot
    }

    /// Returns the code of the database's problem, or `nil` without one. Claims can fail where the check does not, such
    /// as on a full disk.
    private func databaseProblem() async -> String? {
        if let problem = database.problem { return problem }
        if let failing = await engine.failingToClaimFor, failing > ProcessStatus.tolerableDelay {
            return "claims_failing"
        }
        return nil
    }

    func processStatus() async -> ProcessStatus {
        var process = ProcessStatus()
        process.isWorker = true
        process.alarms = engine.currentAlarms
        process.databaseProblem = await databaseProblem()
        process.resultsWaiting = await engine.failingToStoreFor
        process.isMetricsLogFailing = metrics.isFailing
        process.droppedLines = metrics.droppedLines
        return process
    }
}
