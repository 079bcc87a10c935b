import Clocks
import HTTPClient
import JSON
import Observability
import RefreshEngine
import SQLiteStore
import Store

/// `--run-once`: one try for each due grant, for cron.
extension Workshop {
    /// How long a run may take.
    private static let longestRun: Duration = .seconds(300)

    func workOnce() async throws -> ExitCode {
        let vault = try openVault()
        let store = try openStore()
        let http = try openHTTP()
        let metrics = try openMetrics()
        let log = EngineLog(metrics: metrics.log, diagnostics: diagnostics, counters: metrics.counters, time: time)
        let engine = try openEngine(store: store, vault: vault, http: http, log: log)
        let presence = WorkerPresence(store: store, ring: vault.ring, workerName: workerName, diagnostics: diagnostics)
        let signals = await SignalStream.start()
        let started = time.sinceBoot
        metrics.log.record(StartedEvent(version: Version.current, mode: "run_once"))
        try await presence.report()

        let companions = Task {
            await withDiscardingTaskGroup { group in
                group.addTask { await presence.run {} }
                group.addTask {
                    await Metronome.beat(every: await engine.leaseRenewalInterval) { await engine.renewLeases() }
                }
                group.addTask {
                    for await signal in signals.signals where signal != .hangUp {
                        _ = await engine.stop(within: configuration.stopDeadline)
                    }
                }
            }
        }
        let summary = try await engine.runOnce(within: Self.longestRun)
        companions.cancel()
        signals.stop()
        await presence.leave()
        await store.close()
        http.shutDown()
        let event = RunOnceEvent(summary, took: time.sinceBoot - started)
        if case .file = configuration.metricsLog { metrics.log.record(event) }
        _ = await metrics.writer.flush()
        // The last line of standard output, wherever the metrics log goes.
        Output.standard.line(event.line(at: time.now, worker: workerName).bytes)
        return summary.leavesWork ? .leftForLater : .success
    }
}

extension RunOnceEvent {
    fileprivate init(_ summary: PassSummary, took duration: Duration) {
        self.init(
            due: summary.due,
            refreshed: summary.refreshed,
            retrying: summary.retrying,
            held: summary.held,
            suspended: summary.suspended,
            reauthRequired: summary.reauthRequired,
            disconnected: summary.disconnected,
            skipped: summary.skipped,
            duration: duration
        )
    }
}
