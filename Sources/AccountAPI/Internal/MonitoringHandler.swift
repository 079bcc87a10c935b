package import Clocks
package import HTTPServer
import JSON
package import Judgement
package import Observability
package import RefreshEngine
import Secrets
package import Store

/// The state of the process for monitors: health, readiness, status and metrics.
///
/// It does not contain secrets, user ids or e-mail addresses; ``InternalRoutes`` decides what needs a credential.
package struct MonitoringHandler: Sendable {
    /// The age of observations up to which the process is not observed again.
    private static let recentAge: Duration = .seconds(30)

    private let database: DatabaseReadiness
    private let engine: RefreshEngine
    private let statistics: CachedResult<GrantStatistics>
    private let lastObservations: CachedResult<Observations>
    private let counters: LifetimeCounters
    private let metrics: MetricsLog
    let phase: ServingPhase
    private let time: any TimeSource
    private let stalledLoops: @Sendable () -> [String]
    private let certificateExpiry: @Sendable () -> Timestamp?
    private let statusReport: @Sendable (ProcessObservations) async throws -> String

    /// Makes the handler.
    ///
    /// `stalledLoops` returns the worker's loops whose last iteration is too long ago. `certificateExpiry` returns the
    /// expiry of the internal listener's certificate, if any. `statusReport` returns the output of `refresh-worker
    /// status --json`. `observe` returns the observations of the judgement, with grants that are counted already.
    package init(
        store: any GrantStore,
        database: DatabaseReadiness,
        engine: RefreshEngine,
        counters: LifetimeCounters,
        metrics: MetricsLog,
        phase: ServingPhase,
        time: any TimeSource,
        stalledLoops: @escaping @Sendable () -> [String],
        certificateExpiry: @escaping @Sendable () -> Timestamp? = { nil },
        statusReport: @escaping @Sendable (ProcessObservations) async throws -> String,
        observe: @escaping @Sendable (ProcessObservations, GrantStatistics) async throws -> Observations
    ) {
        self.database = database
        self.engine = engine
        let statistics = CachedResult(time: time) { try await store.grantStatistics(at: time.now) }
        self.statistics = statistics
        lastObservations = CachedResult(time: time) {
            let process = await Self.observations(database: database, engine: engine, metrics: metrics)
            return try await observe(process, try await statistics.value())
        }
        self.counters = counters
        self.metrics = metrics
        self.phase = phase
        self.time = time
        self.stalledLoops = stalledLoops
        self.certificateExpiry = certificateExpiry
        self.statusReport = statusReport
    }

    /// Returns 200 if the loops of the process run; if not, only a restart helps.
    package func health() -> ServerResponse {
        let stalled = stalledLoops()
        guard stalled.isEmpty else { return .text("stalled: \(stalled.joined(separator: ", "))\n", status: 503) }
        return .text("ok\n")
    }

    /// Returns 200 if requests should be sent to this worker: not while it starts or drains, nor without the database.
    ///
    /// It does not wait for the database: counts and judgement are the last ones. An outage of Google is shown in the
    /// body and does not count: otherwise the load balancer would remove all workers at once.
    package func readiness() async -> ServerResponse {
        let phase = phase.current
        let databaseProblem = await Self.problem(of: database, engine)
        let storing = await engine.failingToStoreFor
        let isStoring = storing.map { $0 <= Judgement.tolerableStoringDelay } ?? true
        let ring = engine.keyRing
        let isReady = phase == .serving && databaseProblem == nil && isStoring && ring.standbyReason == nil
        let statuses = await engine.clientStatuses
        let waiting = await engine.waiting
        // A probe must not wait for a count over millions of grants.
        let statistics = await statistics.latestValue()
        let judgement = await currentJudgement()
        return .object(status: isReady ? 200 : 503, headers: [ServerResponse.noStore]) { line in
            line.field("ready", isReady)
            line.field("verdict", judgement?.verdict ?? "unknown")
            line.array("concerns") { array in
                for concern in judgement?.concerns ?? [] { array.object { concern.write(into: &$0) } }
            }
            line.object("checks") { checks in
                checks.field("phase", phase.rawValue)
                checks.field("database", databaseProblem ?? "ok")
                checks.field("results", isStoring ? "ok" : "waiting")
                checks.field("key_ring", Self.condition(of: ring))
            }
            line.object("database") { object in
                if let age = database.sinceLastSuccess { object.field("last_success_seconds", age.inSeconds) }
                if let storing { object.field("results_waiting_seconds", storing.inSeconds) }
            }
            line.array("clients") { array in
                for status in statuses {
                    array.object { client in
                        client.field("client_id", status.clientID)
                        client.field("breaker", status.breaker.rawValue)
                        client.field("ceiling_per_s", status.ceiling)
                    }
                }
            }
            line.object("backlog") { backlog in
                backlog.field("waiting", waiting)
                if let statistics {
                    backlog.field("overdue", statistics.due)
                    backlog.field("oldest_overdue_seconds", Self.oldestOverdue(statistics, at: time.now).inSeconds)
                }
            }
        }
    }

    /// Returns the code of the key ring's problem; only `lacks_keys` stops refreshes.
    private static func condition(of ring: ReloadableKeyRing) -> String {
        if ring.standbyReason != nil { return "lacks_keys" }
        if ring.fileProblem != nil { return "file_unreadable" }
        return ring.rejection != nil ? "file_refused" : "ok"
    }

    /// Returns the readiness for callers without a credential, who do not see the reasons.
    package func readinessWithoutDetails() async -> ServerResponse {
        let isReady = await readiness().status == 200
        return .text(isReady ? "ready\n" : "not ready\n", status: isReady ? 200 : 503)
    }

    /// Returns the output of `refresh-worker status --json`.
    package func status() async -> ServerResponse {
        do {
            return .json(Array(try await statusReport(await observations()).utf8), headers: [ServerResponse.noStore])
        } catch {
            return VendingError.storeUnavailable.response
        }
    }

    /// Returns the metrics in Prometheus' text format.
    package func prometheus() async -> ServerResponse {
        let clients = await engine.clientStatuses.map { status in
            PrometheusReport.Client(
                id: status.clientID,
                breaker: PrometheusReport.Client.Breaker(rawValue: status.breaker.rawValue) ?? .closed,
                ceiling: status.ceiling
            )
        }
        let report = PrometheusReport(
            counts: counters.counts,
            startedAt: counters.startedAt,
            droppedLines: metrics.droppedLines,
            inFlight: await engine.inFlight,
            grants: await countedGrants(clients.map(\.id)),
            clients: clients,
            alarms: engine.currentAlarms,
            verdict: await currentJudgement().map { judgement in
                PrometheusReport.Verdict(
                    isWell: judgement.isWell,
                    concerns: Condition.allCases.map { (kind: $0.rawValue, count: judgement.count(of: $0)) }
                )
            },
            certificateExpiresAt: certificateExpiry(),
            usage: .current
        )
        return ServerResponse(headers: [("Content-Type", PrometheusText.contentType)], body: report.text.bytes)
    }

    /// Returns the last observations, after a wait of at most `limit` if they are not recent and the database answers;
    /// `nil` if there are none of the last ten minutes.
    func latestObservations(within limit: Duration) async -> Observations? {
        database.problem == nil ? await lastObservations.value(within: limit) : await lastObservations.latestValue()
    }

    /// Returns the judgement of the last observations without waiting.
    ///
    /// If they are not recent, the process is observed again. If the database cannot be used, or there are none and the
    /// process has a concern, it judges the process alone.
    func currentJudgement() async -> Judgement? {
        let last = await lastObservations.latestValue()
        if let last, database.problem == nil {
            return Judgement(time.now - last.at < Self.recentAge ? last : last.with(await observations()))
        }
        var observed = Observations(at: time.now)
        observed.process = await observations()
        let own = Judgement(observed)
        return own.isWell ? last.map { Judgement($0) } : own
    }

    /// Returns the code of the database's problem; `nil` without one.
    ///
    /// Claims may fail where the check does not, such as on a full disk.
    private static func problem(of database: DatabaseReadiness, _ engine: RefreshEngine) async -> String? {
        if let problem = database.problem { return problem }
        let failing = await engine.failingToClaimFor ?? .zero
        return failing > Judgement.tolerableStoringDelay ? "claims_failing" : nil
    }

    private func observations() async -> ProcessObservations {
        await Self.observations(database: database, engine: engine, metrics: metrics)
    }

    private static func observations(
        database: DatabaseReadiness,
        engine: RefreshEngine,
        metrics: MetricsLog
    ) async -> ProcessObservations {
        var process = ProcessObservations()
        process.alarms = engine.currentAlarms
        process.databaseProblem = await problem(of: database, engine)
        process.resultsWaiting = await engine.failingToStoreFor
        process.isMetricsLogFailing = metrics.isFailing
        process.droppedLines = metrics.droppedLines
        return process
    }

    private func countedGrants(_ clients: [String]) async -> PrometheusReport.Grants? {
        let statistics: GrantStatistics
        do {
            statistics = try await self.statistics.value()
        } catch {
            // The response shows it: without grants, `refresh_worker_store_up` is 0.
            return nil
        }
        return PrometheusReport.Grants(
            byState: GrantState.allCases.map { (state: $0.rawValue, count: statistics.byState[$0, default: 0]) },
            due: await engine.waiting + statistics.due,
            overdue: statistics.due,
            oldestOverdue: Self.oldestOverdue(statistics, at: time.now),
            expired: Set(clients).union(statistics.expired.clients.keys).sorted().map { id in
                let expired = statistics.expired.clients[id]
                let oldest = expired.map { max(.zero, time.now - $0.oldest) } ?? .zero
                return PrometheusReport.Expired(client: id, count: expired?.count ?? 0, oldest: oldest)
            }
        )
    }

    private static func oldestOverdue(_ statistics: GrantStatistics, at now: Timestamp) -> Duration {
        statistics.oldestDueAt.map { max(.zero, now - $0) } ?? .zero
    }
}

extension Observations {
    /// Returns these observations with newer ones of the process, and with the alarms that only the database knows.
    fileprivate func with(_ process: ProcessObservations) -> Observations {
        var observed = self
        observed.process = process
        observed.process.alarms += self.process.alarms.filter { alarm in
            !process.alarms.contains { $0.kind == alarm.kind && $0.client == alarm.client }
        }
        return observed
    }
}
