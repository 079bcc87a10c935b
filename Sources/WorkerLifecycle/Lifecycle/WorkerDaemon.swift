import AccountAPI
import Observability
import RefreshEngine
package import Store
package import WorkerConfiguration

/// The worker in the foreground: starts the parts, runs their loops, and stops them in reverse order.
package struct WorkerDaemon: Sendable {
    let context: CommandContext
    /// Returns the output of `status --json`, which the internal listener serves.
    let statusReport: @Sendable (any AccountStore) async throws -> String

    package init(context: CommandContext, statusReport: @escaping @Sendable (any AccountStore) async throws -> String) {
        self.context = context
        self.statusReport = statusReport
    }

    package func run() async throws -> ExitCode {
        try context.configuration.checkServing(environment: context.inputs.environment)
        let notifier = SystemdNotifier(environment: context.inputs.environment, processID: ProcessIdentity.number)
        for problem in notifier.problems { context.diagnostics.warning("systemd", ["error": problem]) }
        let worker = try await openWorker(notifier)
        // Before the signal handlers are installed, so that the first signal still ends a worker that waits.
        try await waitingForDatabase(notifier) { try await worker.presence.report() }
        await worker.database.check()
        let signals = await SignalStream.start()
        worker.metrics.record(StartedEvent(version: Version.current, mode: "daemon"))
        context.diagnostics.notice(
            "started",
            ["version": Version.current, "database": "\(context.configuration.database)"]
        )
        return await worker.work(until: signals)
    }

    /// Opens all parts before anything is announced, so that a fault shows as the exit code of the start.
    func openWorker(_ notifier: SystemdNotifier) async throws -> RunningWorker {
        let vault = try context.openVault()
        let store = try await waitingForDatabase(notifier) { try await openStore(notifier) }
        let http = try context.openHTTP()
        let metrics = try context.openMetrics()
        let log = EngineLog(
            metrics: metrics.log,
            diagnostics: context.diagnostics,
            counters: metrics.counters,
            time: context.time
        )
        let spill = context.openSpill(vault: vault)
        let engine = try context.openEngine(store: store, vault: vault, http: http, log: log, spill: spill)
        let presence = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: context.workerName,
            diagnostics: context.diagnostics,
            log: log,
            engine: engine
        )
        let pulse = LoopHeartbeats(time: context.time)
        let database = DatabaseReadiness(store: store, time: context.time)
        let listeners = try HTTPListeners(
            HTTPListeners.Parts(
                context: context,
                store: store,
                database: database,
                engine: engine,
                vault: vault,
                metrics: metrics.log,
                counters: metrics.counters,
                log: log,
                pulse: pulse,
                statusReport: statusReport
            )
        )
        return RunningWorker(
            context: context,
            engine: engine,
            store: store,
            vault: vault,
            spill: spill,
            http: http,
            metrics: metrics.log,
            writer: metrics.writer,
            counters: metrics.counters,
            presence: presence,
            notifier: notifier,
            pulse: pulse,
            listeners: listeners,
            database: database,
            notices: try context.openNotices(
                store: store,
                http: http,
                metrics: metrics.log,
                counters: metrics.counters
            )
        )
    }
}
