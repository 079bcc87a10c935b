import Base
import Scheduler
import Status
import Storage
import Telemetry

/// `--run-once`: tries each due grant once, for cron.
extension CommandContext {
    /// The limit of a pass in every case, because cron starts the next one.
    private static let maximumPass: Duration = .seconds(300)
    /// The limit of the time to store results at the end, even if a longer stop is configured.
    static let maximumStop: Duration = .seconds(20)
    private static let maximumDelivery: Duration = .seconds(60)

    func runPass() async throws -> ExitCode {
        let started = time.sinceBoot
        let stopDeadline = min(configuration.stopDeadline, Self.maximumStop)
        let closing = started + (Self.maximumPass - WorkerParts.timeToClose - .seconds(1))
        let stopping = closing - stopDeadline - RefreshEngine.maximumOverrun
        let vault = try openVault()
        let store = try await openStore()
        let worker = try WorkerParts(self, store: store, vault: vault)
        let engine = worker.engine
        let signals = await SignalStream.start()
        worker.metrics.record(.started(mode: "run_once"))
        do {
            try await worker.heartbeat.report()
            try await NotedTime.lastPass.record(time.now, in: store)
        } catch {
            await worker.heartbeat.leave()
            await store.close()
            throw error
        }
        await keepReserve(of: worker.spill)

        let running = worker.start(worker.services)
        // A signal, the end of the time or a permanent refusal of the store ends the pass. Results in flight are still
        // stored or spilled.
        let ending = Task { () -> StoreError? in
            await withTaskGroup(of: StoreError?.self, returning: StoreError?.self) { group in
                group.addTask {
                    for await signal in signals.signals where signal != .hangUp {
                        _ = await engine.stop(within: stopDeadline)
                    }
                    return nil
                }
                group.addTask {
                    do {
                        try await time.sleep(for: stopping - time.sinceBoot)
                        _ = await engine.stop(within: stopDeadline)
                    } catch {
                        // The pass has ended in time.
                    }
                    return nil
                }
                group.addTask {
                    for await error in engine.fatalStoreErrors {
                        _ = await engine.stop(within: stopDeadline)
                        return error
                    }
                    return nil
                }
                return await group.reduce(nil) { $0 ?? $1 }
            }
        }
        let outcome: Result<PassSummary, any Error>
        do {
            outcome = .success(try await engine.runPass(within: stopping - time.sinceBoot))
        } catch {
            outcome = .failure(error)
        }
        let unstored = await engine.stop(within: min(stopDeadline, max(.zero, closing - time.sinceBoot)))
        if let notices = worker.notices { await deliver(notices, within: closing - time.sinceBoot) }
        signals.stop()
        await worker.stop(running)
        ending.cancel()
        report(unstored, in: worker.spill)
        if let error = await ending.value { throw error }
        let summary = try outcome.get()
        let event = MetricsEvent.runOnce(summary, unstored: unstored, duration: time.sinceBoot - started)
        if case .file = configuration.metricsLog { worker.metrics.record(event) }
        await worker.writer.finish()
        // The last line of standard output, even if the metrics log is elsewhere.
        Output.standard.line(event.resultLine(at: time.now, worker: workerName).bytes)
        guard unstored == .none else { return .inputOutput }
        return summary.leavesGrantsDue ? .leftForLater : .success
    }

    /// Reserves disk space for results.
    ///
    /// A failure does not stop the pass.
    func keepReserve(of spill: ResultSpillFile) async {
        await attempt("reserve") { try await spill.keepReserve() }
    }

    /// Runs `body`, and only logs its failure: a later run tries again.
    func attempt(_ name: StaticString, _ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            diagnostics.debug(name, ["error": "\(error)"])
        }
    }

    /// Delivers the due notices.
    ///
    /// Those not accepted in time wait for the next pass or a daemon.
    private func deliver(_ notices: NoticeDispatcher, within span: Duration) async {
        let span = min(span, Self.maximumDelivery)
        guard span > .zero else { return }
        let delivery = Task {
            try await notices.deliverDue()
            try await notices.announceExpiring()
            return try await notices.deliverDue()
        }
        let hasEnded = await time.wait(atMost: span) {
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
