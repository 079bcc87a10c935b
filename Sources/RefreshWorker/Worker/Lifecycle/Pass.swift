import Base
import Scheduler
import Status
import Storage
import Telemetry

/// `--run-once`: tries each due grant once, for cron.
struct Pass {
    /// The limit of the time to store results at the end, even if a longer stop is configured.
    static let maximumStop: Duration = .seconds(20)
    private static let maximumDelivery: Duration = .seconds(60)

    private let context: CommandContext
    private let started: BootInstant
    private let limits: PassLimits

    init(_ context: CommandContext) {
        self.context = context
        started = context.time.sinceBoot
        limits = PassLimits(from: started, timeToStop: min(context.configuration.stopDeadline, Self.maximumStop))
    }

    func run() async throws -> ExitCode {
        let vault = try await BlockingCallQueue.keyCommand.run { [context] in try context.openVault() }
        let store = try await context.openStore()
        let worker = try await Worker(context, store: store, vault: vault)
        let engine = worker.engine
        let signals = await SignalStream.start()
        worker.metrics.record(.started(mode: "run_once"))
        try await announce(worker, in: store)
        await worker.keepReserve()

        let running = worker.start(worker.loops)
        let ending = Task { await stopEarly(engine, at: signals) }
        let outcome: Result<PassSummary, any Error>
        do {
            outcome = .success(try await engine.runPass(within: limits.stopping - context.time.sinceBoot))
        } catch {
            outcome = .failure(error)
        }
        let timeToStop = min(limits.timeToStop, max(.zero, limits.closing - context.time.sinceBoot))
        let unstored = await engine.stop(within: timeToStop)
        if let notices = worker.notices { await deliver(notices, within: limits.closing - context.time.sinceBoot) }
        signals.stop()
        await worker.stop(running)
        ending.cancel()
        unstored.report(to: context.diagnostics, keptIn: worker.spill.path)
        if let error = await ending.value { throw error }
        let summary = try outcome.get()
        let event = MetricsEvent.runOnce(summary, unstored: unstored, duration: context.time.sinceBoot - started)
        if case .file = context.configuration.metricsLog { worker.metrics.record(event) }
        await worker.writer.finish()
        // The last line of standard output, even if the metrics log is elsewhere.
        Output.standard.line(event.resultLine(at: context.time.now, worker: context.workerName).bytes)
        guard unstored == .none else { return .inputOutput }
        return summary.leavesGrantsDue ? .leftForLater : .success
    }

    /// Tells the other processes of the pass, or closes the store.
    private func announce(_ worker: Worker, in store: any Store) async throws {
        do {
            try await worker.heartbeat.report()
            try await NotedTime.lastPass.record(context.time.now, in: store)
        } catch {
            await worker.heartbeat.leave()
            await store.close()
            throw error
        }
    }

    /// Stops the engine at a signal, at the end of the time, or at a permanent refusal of the store, which it returns.
    ///
    /// Results in flight are still stored or spilled.
    private func stopEarly(_ engine: RefreshEngine, at signals: SignalStream) async -> StoreError? {
        await withTaskGroup(of: StoreError?.self, returning: StoreError?.self) { group in
            group.addTask {
                for await signal in signals.signals where signal != .hangUp {
                    _ = await engine.stop(within: limits.timeToStop)
                }
                return nil
            }
            group.addTask {
                do {
                    try await context.time.sleep(for: limits.stopping - context.time.sinceBoot)
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
        let hasEnded = await context.time.wait(atMost: span) {
            do {
                _ = try await delivery.value
                try await notices.stop()
            } catch {
                context.diagnostics.warning("notices wait for the next pass", ["error": "\(error)"])
            }
        }
        guard !hasEnded else { return }
        delivery.cancel()
        context.diagnostics.warning("notices wait for the next pass", ["error": "the pass took too long"])
    }
}
