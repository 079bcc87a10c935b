import Base
import HTTPClient
import Scheduler
import Status
import Storage
import Telemetry

/// `--run-once`: tries each due grant once, for cron.
extension CommandContext {
    /// The limit of a pass in every case, because cron starts the next one.
    private static let longestPass: Duration = .seconds(300)
    /// The limit of the time to store results at the end, even if a longer stop is configured.
    package static let longestStop: Duration = .seconds(20)
    private static let timeToClose: Duration = .seconds(5)
    private static let longestDelivery: Duration = .seconds(60)

    package func runPass() async throws -> ExitCode {
        let started = time.sinceBoot
        let stopDeadline = min(configuration.stopDeadline, Self.longestStop)
        let closing = started + (Self.longestPass - Self.timeToClose - .seconds(1))
        let stopping = closing + (.zero - stopDeadline - RefreshEngine.maximumOverrun)
        let vault = try openVault()
        let store = try await openStore()
        let worker = try RunningWorker(self, store: store, vault: vault)
        let (engine, heartbeat, metrics) = (worker.engine, worker.heartbeat, worker.metrics)
        let signals = await SignalStream.start()
        metrics.record(.started(version: Version.current, mode: "run_once"))
        try await heartbeat.report()
        try await LastPass.record(in: store, at: time.now)
        await keepReserve(of: worker.spill)

        let loops = Task {
            await withDiscardingTaskGroup { group in
                group.addTask { await heartbeat.run(by: time) {} }
                group.addTask {
                    await PeriodicTask.run(every: await engine.leaseRenewalInterval, by: time) {
                        await engine.renewLeases()
                    }
                }
                group.addTask {
                    for await signal in signals.signals where signal != .hangUp {
                        _ = await engine.stop(within: stopDeadline)
                    }
                }
                group.addTask {
                    do {
                        try await time.sleep(for: stopping - time.sinceBoot)
                        _ = await engine.stop(within: stopDeadline)
                    } catch {
                        // The pass has ended in time.
                    }
                }
            }
        }
        // A permanent refusal of the store ends the pass; results in flight are still stored or spilled.
        let moved = Task { () -> StoreError? in
            for await error in engine.fatalStoreErrors {
                _ = await engine.stop(within: stopDeadline)
                return error
            }
            return nil
        }
        let outcome: Result<PassSummary, any Error>
        do {
            outcome = .success(try await engine.runPass(within: stopping - time.sinceBoot))
        } catch {
            outcome = .failure(error)
        }
        let unstored = await engine.stop(within: min(stopDeadline, max(.zero, closing - time.sinceBoot)))
        if let notices = worker.notices { await deliver(notices, within: closing - time.sinceBoot) }
        loops.cancel()
        signals.stop()
        await TimeLimit.wait(atMost: Self.timeToClose, by: time) {
            if await !engine.isStoreFailing { await heartbeat.leave() }
            await store.close()
        }
        worker.http.shutDown()
        moved.cancel()
        report(unstored, in: worker.spill)
        if let error = await moved.value { throw error }
        let summary = try outcome.get()
        let event = MetricsEvent.runOnce(summary, unstored, took: time.sinceBoot - started)
        if case .file = configuration.metricsLog { metrics.record(event) }
        _ = await worker.writer.flush()
        // The last line of standard output, even if the metrics log is elsewhere.
        Output.standard.line(event.resultLine(at: time.now, worker: workerName).bytes)
        guard unstored == UnstoredResults() else { return .inputOutput }
        return summary.leavesGrantsDue ? .leftForLater : .success
    }

    /// Reserves disk space for results; a failure does not stop the pass.
    func keepReserve(of spill: ResultSpillFile) async {
        do {
            try await spill.keepReserve()
        } catch {
            diagnostics.debug("reserve", ["error": "\(error)"])
        }
    }

    /// Delivers the due notices; those not accepted in time wait for the next pass or a daemon.
    private func deliver(_ notices: NoticeDispatcher, within span: Duration) async {
        let span = min(span, Self.longestDelivery)
        guard span > .zero else { return }
        let delivery = Task { try await notices.deliverDue() }
        let hasEnded = await TimeLimit.wait(atMost: span, by: time) {
            do {
                _ = try await delivery.value
                try await notices.stop()
            } catch {
                diagnostics.warning("notices wait for the next pass", ["error": "\(error)"])
            }
        }
        guard !hasEnded else { return }
        delivery.cancel()
        diagnostics.warning("notices wait for the next pass", ["error": "the pass took too long"])
    }
}

extension MetricsEvent {
    fileprivate static func runOnce(
        _ summary: PassSummary,
        _ unstored: UnstoredResults,
        took duration: Duration
    ) -> MetricsEvent {
        .runOnce(
            due: summary.due,
            refreshed: summary.refreshed,
            retrying: summary.retrying,
            held: summary.held,
            suspended: summary.suspended,
            reauthRequired: summary.reauthRequired,
            disconnected: summary.disconnected,
            skipped: summary.skipped,
            spilled: unstored.spilled,
            lost: unstored.lost,
            duration: duration
        )
    }
}
