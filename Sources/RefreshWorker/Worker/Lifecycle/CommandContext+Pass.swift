import Base
import Scheduler
import Status
import Storage
import Telemetry

/// `--run-once`: tries each due grant once, for cron.
extension CommandContext {
    /// The limit of the time to store results at the end, even if a longer stop is configured.
    static let maximumStop: Duration = .seconds(20)
    private static let maximumDelivery: Duration = .seconds(60)

    func runPass() async throws -> ExitCode {
        let started = time.sinceBoot
        let limits = PassLimits(from: started, timeToStop: min(configuration.stopDeadline, Self.maximumStop))
        let vault = try openVault()
        let store = try await openStore()
        let worker = try Worker(self, store: store, vault: vault)
        let engine = worker.engine
        let signals = await SignalStream.start()
        worker.metrics.record(.started(mode: "run_once"))
        try await announcePass(of: worker, in: store)
        await keepReserve(of: worker.spill)

        let running = worker.start(worker.loops)
        let ending = Task { await stopEarly(engine, at: signals, limits: limits) }
        let outcome: Result<PassSummary, any Error>
        do {
            outcome = .success(try await engine.runPass(within: limits.stopping - time.sinceBoot))
        } catch {
            outcome = .failure(error)
        }
        let timeToStop = min(limits.timeToStop, max(.zero, limits.closing - time.sinceBoot))
        let unstored = await engine.stop(within: timeToStop)
        if let notices = worker.notices { await deliver(notices, within: limits.closing - time.sinceBoot) }
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

    /// Tells the other processes of the pass, or closes the store.
    private func announcePass(of worker: Worker, in store: any Store) async throws {
        do {
            try await worker.heartbeat.report()
            try await NotedTime.lastPass.record(time.now, in: store)
        } catch {
            await worker.heartbeat.leave()
            await store.close()
            throw error
        }
    }

    /// Stops the engine at a signal, at the end of the time, or at a permanent refusal of the store, which it returns.
    ///
    /// Results in flight are still stored or spilled.
    private func stopEarly(_ engine: RefreshEngine, at signals: SignalStream, limits: PassLimits) async -> StoreError? {
        await withTaskGroup(of: StoreError?.self, returning: StoreError?.self) { group in
            group.addTask {
                for await signal in signals.signals where signal != .hangUp {
                    _ = await engine.stop(within: limits.timeToStop)
                }
                return nil
            }
            group.addTask {
                do {
                    try await time.sleep(for: limits.stopping - time.sinceBoot)
                    _ = await engine.stop(within: limits.timeToStop)
                } catch {
                    // The pass has ended in time.
                }
                return nil
            }
            group.addTask {
                for await error in engine.fatalStoreErrors {
                    _ = await engine.stop(within: limits.timeToStop)
                    return error
                }
                return nil
            }
            return await group.reduce(nil) { $0 ?? $1 }
        }
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

/// When the parts of a pass end at the latest.
private struct PassLimits {
    /// The limit of a pass in every case, because cron starts the next one.
    private static let maximumPass: Duration = .seconds(300)

    /// The time that the engine has to store results.
    let timeToStop: Duration
    /// When the engine stops.
    let stopping: BootInstant
    /// When the other parts stop.
    let closing: BootInstant

    init(from start: BootInstant, timeToStop: Duration) {
        self.timeToStop = timeToStop
        closing = start + (Self.maximumPass - Worker.timeToClose - .seconds(1))
        stopping = closing - timeToStop - RefreshEngine.maximumOverrun
    }
}
