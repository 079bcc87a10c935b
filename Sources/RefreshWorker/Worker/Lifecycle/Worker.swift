import Base
import HTTPClient
import OpenTelemetry
import Scheduler
import Status
import Storage
import Telemetry

/// A worker, whether a daemon or a pass: its parts, which are opened together.
///
/// Its life is in `Worker+Life.swift`: loops begin, a daemon works until a signal or an error stops it, and everything
/// is closed in reverse order.
struct Worker: Sendable {
    let context: CommandContext
    let store: any Store
    let vault: TokenVault
    /// The client for refreshes, revocations and codes.
    let http: HTTPClient
    /// Writes the lines of the metrics log.
    let writer: LineWriter
    let metrics: MetricsLog
    let counters: EventCounters
    let log: EngineLog
    let spill: ResultSpillFile
    let engine: RefreshEngine
    let heartbeat: WorkerHeartbeat
    /// Delivers notices to the backend, or is `nil` if they are not configured.
    let notices: NoticeDispatcher?
    let status: LiveStatus
    /// Collects the metrics for Prometheus and for a collector.
    let metricsSource: MetricsSource
    /// What sends metrics and spans to a collector, if one is configured.
    let exporters: TelemetryExporters
    let loopHeartbeats: LoopHeartbeats
    let notifier: SystemdNotifier
    /// `nil` in a pass, and in a daemon until they are opened.
    var listeners: HTTPListeners?

    /// Opens every part except the listeners, and runs nothing yet.
    init(
        _ context: CommandContext,
        store: any Store,
        vault: TokenVault,
        notifier: SystemdNotifier = SystemdNotifier(environment: [:], processID: ProcessSetup.id)
    ) async throws {
        self.context = context
        self.store = store
        self.vault = vault
        self.notifier = notifier
        http = try context.openHTTP()
        writer = try context.openMetricsWriter()
        metrics = MetricsLog(sink: writer, worker: context.workerName, time: context.time)
        counters = EventCounters(time: context.time)
        exporters = try context.openTelemetryExporters(counters: counters)
        log = EngineLog(
            metrics: metrics,
            diagnostics: context.diagnostics,
            counters: counters,
            spans: exporters.traces?.spans,
            time: context.time
        )
        log.sample(oneOf: context.configuration.logSample)
        spill = context.openSpill(of: try await store.databaseID(from: context.random), vault: vault)
        let clientSecrets = try ClientSecretFile.read(for: context.configuration)
        clientSecrets.warnOfUnconfiguredClientIDs(
            to: context.diagnostics,
            path: context.configuration.clientSecretFile
        )
        engine = context.openEngine(
            store: store,
            vault: vault,
            http: http,
            log: log,
            spill: spill,
            clientSecrets: clientSecrets
        )
        heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: context.workerName,
            diagnostics: context.diagnostics,
            log: log,
            engine: engine
        )
        notices = try context.openNotices(store: store, log: log)
        status = LiveStatus(
            from: context.status(from: store),
            database: DatabaseReadiness(store: store, time: context.time),
            engine: engine,
            metrics: metrics,
            diagnostics: context.diagnostics,
            time: context.time
        )
        metricsSource = MetricsSource(
            version: Version.withCommit,
            status: status,
            engine: engine,
            counters: counters,
            metricsLog: metrics,
            time: context.time
        )
        loopHeartbeats = LoopHeartbeats(time: context.time)
    }

    func notify(_ messages: NotifyMessage...) { notifier.notify(messages, diagnostics: context.diagnostics) }
}
