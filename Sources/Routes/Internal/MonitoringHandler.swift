package import Base
import Crypto
import HTTPServer
package import Scheduler
package import Status
package import Telemetry

/// The state of the process for monitors and people: health, readiness, status, metrics and the status page.
///
/// Only the pages for operators contain user ids. ``InternalRoutes`` decides what needs a credential.
package struct MonitoringHandler: Sendable {
    private let name: String
    let version: String
    let status: LiveStatus
    let engine: RefreshEngine
    let counters: EventCounters
    let log: EngineLog
    let metrics: MetricsSource
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
        status: LiveStatus,
        engine: RefreshEngine,
        counters: EventCounters,
        log: EngineLog,
        metrics: MetricsSource,
        phase: Shared<ServingPhase>,
        time: any TimeSource,
        stalledLoops: @escaping @Sendable () -> [String],
        certificateExpiry: @escaping @Sendable () -> Timestamp? = { nil }
    ) {
        self.name = name
        self.version = version
        self.status = status
        self.engine = engine
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
        let process = await status.process()
        let clients = await engine.clientStatuses
        let waiting = await engine.waiting
        let snapshot = await status.latestSnapshot()
        let isReady = isReady(process)
        let report = ReadinessReport(
            isReady: isReady,
            at: time.now,
            phase: phase.value,
            process: process,
            keyRingProblem: Self.problem(of: engine.keyRing),
            sinceLastSuccess: status.database.sinceLastSuccess,
            clients: clients,
            waiting: waiting,
            snapshot: snapshot,
            findings: status.findings(of: process, and: snapshot)
        )
        return .object(status: isReady ? 200 : 503, headers: [ServerResponse.noStore]) { report.write(into: &$0) }
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
        let isReady = isReady(await status.process())
        return .text(isReady ? "ready\n" : "not ready\n", status: isReady ? 200 : 503)
    }

    /// Returns the output of `refresh-worker status --json`.
    func report() async -> ServerResponse {
        do {
            return .json(try await status.completeSnapshot().json.bytes, headers: [ServerResponse.noStore])
        } catch {
            return ServiceError.storeUnavailable.response
        }
    }

    /// Returns the status page, with the answer to an operator who looked up a user by a text.
    func page(showing lookup: StatusPage.Lookup? = nil, lookedUp text: String? = nil) async -> ServerResponse {
        var page = await statusPage(showing: lookup)
        page.lookedUp = text
        return ServerResponse(
            headers: [("Content-Type", "text/html; charset=utf-8")] + Self.pageHeaders,
            body: Array(page.html.utf8)
        )
    }

    /// Makes the page from the last snapshot.
    func statusPage(showing lookup: StatusPage.Lookup? = nil) async -> StatusPage {
        let snapshot = await status.snapshotForPeople()
        let process = await status.process()
        let judged = status.recentEnoughForPeople(snapshot)
        var page = StatusPage(
            at: time.now,
            worker: name,
            version: version,
            startedAt: counters.startedAt,
            phase: phaseForPeople(process)
        )
        page.findings = status.findings(of: process, and: judged)
        page.judgedAt = judged?.at ?? page.at
        page.snapshot = snapshot
        // Without the database, the clients as this worker knows them.
        page.clients = if let snapshot { snapshot.clients } else { await engine.clientStatuses }
        page.activity = snapshot?.activity ?? RecentActivity()
        page.activity.add(counters.activity, at: time.now)
        page.services = counters.lifetime.services
        page.changes = log.recentChanges
        page.lookup = lookup
        return page
    }

    private func phaseForPeople(_ process: ProcessStatus) -> String {
        if phase.value == .serving, !isReady(process) { return "not ready" }
        return phase.value.rawValue
    }
}
