package import Base
import Crypto
import HTTPServer
package import Scheduler
package import Status
import Storage
package import Telemetry

/// The state of the process for monitors: health, readiness, status and metrics.
///
/// It does not contain secrets, user ids or e-mail addresses; ``InternalRoutes`` decides what needs a credential.
package struct MonitoringHandler: Sendable {
    /// The pause between two observations in the background: with their own time they are at most five seconds old.
    static let interval: Duration = .seconds(2)
    /// The age of observations above which they say nothing about now: reading the database hangs.
    private static let maximumAge: Duration = .seconds(30)

    private let database: DatabaseReadiness
    private let engine: RefreshEngine
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
    /// status --json`. `observe` returns what the database says for the judgement.
    package init(
        database: DatabaseReadiness,
        engine: RefreshEngine,
        counters: LifetimeCounters,
        metrics: MetricsLog,
        phase: ServingPhase,
        time: any TimeSource,
        stalledLoops: @escaping @Sendable () -> [String],
        certificateExpiry: @escaping @Sendable () -> Timestamp? = { nil },
        statusReport: @escaping @Sendable (ProcessObservations) async throws -> String,
        observe: @escaping @Sendable () async throws -> Observations
    ) {
        self.database = database
        self.engine = engine
        lastObservations = CachedResult(time: time, compute: observe)
        self.counters = counters
        self.metrics = metrics
        self.phase = phase
        self.time = time
        self.stalledLoops = stalledLoops
        self.certificateExpiry = certificateExpiry
        self.statusReport = statusReport
    }

    /// Returns 200 if the loops of the process run; if not, only a restart helps.
    func health() -> ServerResponse {
        let stalled = stalledLoops()
        guard stalled.isEmpty else { return .text("stalled: \(stalled.joined(separator: ", "))\n", status: 503) }
        return .text("ok\n")
    }

    /// Observes the database until the task is cancelled, so that no request has to wait for it.
    package func run() async {
        while !Task.isCancelled {
            do {
                _ = try await lastObservations.value()
            } catch {
                // The response shows it: `DatabaseReadiness` has the problem, and the observations grow old.
            }
            do {
                try await time.sleep(for: Self.interval)
            } catch {
                return
            }
        }
    }

    /// `true` if requests should be sent to this worker: not while it starts or drains, nor without the database.
    func isReady(_ process: ProcessObservations) -> Bool {
        phase.current == .serving && process.databaseProblem == nil && Self.isStoring(process)
            && engine.keyRing.standbyReason == nil
    }

    private static func isStoring(_ process: ProcessObservations) -> Bool {
        process.resultsWaiting.map { $0 <= Judgement.tolerableStoringDelay } ?? true
    }

    /// Returns 200 if requests should be sent to this worker.
    ///
    /// It does not wait for the database: a probe must not. An outage of Google is shown in the body and does not
    /// count: otherwise the load balancer would remove all workers at once.
    func readiness() async -> ServerResponse {
        let process = await observations()
        let isReady = isReady(process)
        let statuses = await engine.clientStatuses
        let waiting = await engine.waiting
        let observed = await latestObservations()
        let judgement = judgement(of: process, observed)
        let now = time.now
        return .object(status: isReady ? 200 : 503, headers: [ServerResponse.noStore]) { line in
            line.field("ready", isReady)
            line.field("at", now.iso8601)
            line.fieldOrNull("observed_at", observed?.at.iso8601)
            line.field("verdict", judgement?.verdict ?? "unknown")
            line.array("concerns") { array in
                for concern in judgement?.concerns ?? [] { array.object { concern.write(into: &$0) } }
            }
            line.object("checks") { checks in
                checks.field("phase", phase.current.rawValue)
                checks.field("database", process.databaseProblem ?? "ok")
                checks.field("results", Self.isStoring(process) ? "ok" : "waiting")
                checks.field("key_ring", Self.condition(of: engine.keyRing))
            }
            line.object("database") { object in
                if let age = database.sinceLastSuccess { object.field("last_success_seconds", age.inSeconds) }
                if let waiting = process.resultsWaiting {
                    object.field("results_waiting_seconds", waiting.inSeconds)
                }
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
                if let grants = observed?.grants {
                    backlog.field("overdue", grants.due)
                    backlog.field("oldest_overdue_seconds", Self.oldestOverdue(grants, at: now).inSeconds)
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
    func readinessWithoutDetails() async -> ServerResponse {
        let isReady = isReady(await observations())
        return .text(isReady ? "ready\n" : "not ready\n", status: isReady ? 200 : 503)
    }

    /// Returns the output of `refresh-worker status --json`.
    func status() async -> ServerResponse {
        do {
            return .json(Array(try await statusReport(await observations()).utf8), headers: [ServerResponse.noStore])
        } catch {
            return APIError.storeUnavailable.response
        }
    }

    /// Returns the metrics in Prometheus' text format.
    func prometheus() async -> ServerResponse {
        let clients = await engine.clientStatuses.map { status in
            let breaker: PrometheusReport.Breaker =
                switch status.breaker {
                case .closed: .closed
                case .open: .open
                case .probing: .probing
                }
            return (id: status.clientID, breaker: breaker, ceiling: status.ceiling)
        }
        let grants = await countedGrants(clients.map(\.id))
        let process = await observations()
        let observed = await latestObservations()
        let report = PrometheusReport(
            counts: counters.counts,
            startedAt: counters.startedAt,
            droppedLines: metrics.droppedLines,
            inFlight: await engine.inFlight,
            grants: grants,
            clients: clients,
            alarms: process.alarms.filter { observed?.hasEnded($0) != true },
            verdict: judgement(of: process, observed).map { judgement in
                (judgement.isWell, Condition.allCases.map { ($0.rawValue, judgement.count(of: $0)) })
            },
            certificateExpiresAt: certificateExpiry(),
            usage: .current
        )
        return ServerResponse(headers: [("Content-Type", PrometheusText.contentType)], body: report.text.bytes)
    }

    /// Returns the last observations without waiting, or `nil` if there are none of the last ten minutes.
    func latestObservations() async -> Observations? {
        await lastObservations.latestValue()
    }

    /// Judges the process as it is now, and the database as it was observed last.
    ///
    /// It judges the process alone if the database cannot be used, or was not observed for long. If the process has no
    /// concern then, it returns `nil`, because it is unknown if all is well.
    func judgement(of process: ProcessObservations, _ observed: Observations?) -> Judgement? {
        let now = time.now
        if let observed, database.problem == nil, now - observed.at <= Self.maximumAge {
            return Judgement(observed.with(process, at: now))
        }
        var own = Observations(at: now)
        own.process = process
        let judgement = Judgement(own)
        return judgement.isWell ? nil : judgement
    }

    /// Returns the code of the database's problem; `nil` without one.
    ///
    /// Claims may fail where the check does not, such as on a full disk.
    private func databaseProblem() async -> String? {
        if let problem = database.problem { return problem }
        let failing = await engine.failingToClaimFor ?? .zero
        return failing > Judgement.tolerableStoringDelay ? "claims_failing" : nil
    }

    /// Observes the process.
    func observations() async -> ProcessObservations {
        var process = ProcessObservations()
        process.isWorker = true
        process.alarms = engine.currentAlarms
        process.databaseProblem = await databaseProblem()
        process.resultsWaiting = await engine.failingToStoreFor
        process.isMetricsLogFailing = metrics.isFailing
        process.droppedLines = metrics.droppedLines
        return process
    }

    private func countedGrants(_ clients: [String]) async -> PrometheusReport.Grants? {
        let statistics: GrantStatistics
        do {
            statistics = try await lastObservations.value().grants
        } catch {
            // The response shows it: without grants, `refresh_worker_store_up` is 0.
            return nil
        }
        return (
            byState: GrantState.allCases.map { (state: $0.rawValue, count: statistics.byState[$0, default: 0]) },
            due: await engine.waiting + statistics.due,
            overdue: statistics.due,
            oldestOverdue: Self.oldestOverdue(statistics, at: time.now),
            expired: Set(clients).union(statistics.expired.clients.keys).sorted().map { id in
                let expired = statistics.expired.clients[id]
                let oldest = expired.map { max(.zero, time.now - $0.oldest) } ?? .zero
                return (client: id, count: expired?.count ?? 0, oldest: oldest)
            }
        )
    }

    private static func oldestOverdue(_ statistics: GrantStatistics, at now: Timestamp) -> Duration {
        statistics.oldestDueAt.map { max(.zero, now - $0) } ?? .zero
    }
}

extension Observations {
    /// Returns these observations with those of the process, to be judged at a later time.
    ///
    /// The alarms that only the database knows stay.
    fileprivate func with(_ process: ProcessObservations, at now: Timestamp) -> Observations {
        var observed = self
        observed.at = now
        observed.process = process
        observed.process.alarms += self.process.alarms.filter { alarm in
            !process.alarms.contains { $0.kind == alarm.kind && $0.client == alarm.client }
        }
        return observed
    }
}
