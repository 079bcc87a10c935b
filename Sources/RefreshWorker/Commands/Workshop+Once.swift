import Clocks
import HTTPClient
import JSON
import Notices
import Observability
import RefreshEngine
import Store

/// `--run-once`: one try for each due grant, for cron.
extension Workshop {
    /// How long a run may take.
    private static let longestRun: Duration = .seconds(300)
    private static let longestDelivery: Duration = .seconds(60)

    func workOnce() async throws -> ExitCode {
        let vault = try openVault()
        let store = try await openStore()
        let http = try openHTTP()
        let metrics = try openMetrics()
        let log = EngineLog(metrics: metrics.log, diagnostics: diagnostics, counters: metrics.counters, time: time)
        let engine = try openEngine(store: store, vault: vault, http: http, log: log)
        let presence = WorkerPresence(
            store: store,
            ring: vault.ring,
            workerName: workerName,
            diagnostics: diagnostics,
            log: log,
            engine: engine
        )
        let notices = try openNotices(store: store, http: http, metrics: metrics.log, counters: metrics.counters)
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
        if let notices { await deliver(notices) }
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

    /// Tells the backend what is due to be told; what it does not take in time waits for the next run, or for a daemon.
    private func deliver(_ notices: NoticeCourier) async {
        let delivery = Task { try await notices.deliverDue() }
        let limit = Task {
            try await Task.sleep(for: Self.longestDelivery)
            delivery.cancel()
        }
        do {
            _ = try await delivery.value
            try await notices.stop()
        } catch {
            diagnostics.warning("notices wait for the next run", ["error": "\(error)"])
        }
        limit.cancel()
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
