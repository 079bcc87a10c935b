package import Base
package import Scheduler
package import Telemetry

/// Collects the metrics of a running worker, for whoever asks or is sent them.
package struct MetricsSource: Sendable {
    private let version: String
    private let status: LiveStatus
    private let engine: RefreshEngine
    private let counters: EventCounters
    private let metricsLog: MetricsLog
    private let time: any TimeSource

    package init(
        version: String,
        status: LiveStatus,
        engine: RefreshEngine,
        counters: EventCounters,
        metricsLog: MetricsLog,
        time: any TimeSource
    ) {
        self.version = version
        self.status = status
        self.engine = engine
        self.counters = counters
        self.metricsLog = metricsLog
        self.time = time
    }

    /// Returns the metrics now.
    ///
    /// It waits for the database unless it was read in the last two seconds. `certificateExpiresAt` is the expiry of
    /// the internal listener's certificate, if it has one.
    package func metrics(certificateExpiresAt: Timestamp?) async -> [Metric] {
        let clients = await engine.clientStatuses
        let fresh: StatusSnapshot?
        do {
            fresh = try await status.freshSnapshot()
        } catch {
            // The metrics show it: `refresh_worker.store.up` is 0.
            fresh = nil
        }
        let process = await status.process()
        let latest = await status.latestSnapshot()
        let metrics = WorkerMetrics(
            at: time.now,
            version: version,
            startedAt: counters.startedAt,
            counts: counters.lifetime,
            droppedLines: metricsLog.droppedLines,
            inFlight: await engine.inFlight,
            waiting: await engine.waiting,
            isStoreRead: fresh != nil,
            grants: fresh?.countedGrants,
            clients: clients,
            commits: await engine.commitDurations,
            notices: fresh?.notices,
            findings: status.findings(of: process, and: latest),
            certificateExpiresAt: certificateExpiresAt
        )
        return metrics.list.metrics
    }
}
