import Base
import Routes
import Scheduler
package import Status
import Storage
import Telemetry

/// The worker in the foreground: starts the parts, runs their loops, and stops them in reverse order.
package struct WorkerDaemon: Sendable {
    let context: CommandContext
    /// Makes the status that the internal listener serves.
    let reporter: StatusReporter

    package init(context: CommandContext, reporter: StatusReporter) {
        self.context = context
        self.reporter = reporter
    }

    package func run() async throws -> ExitCode {
        try context.configuration.checkServing(environment: context.inputs.environment)
        // The first sleep takes Dispatch's descriptor for all later ones. Without it they would never end.
        try await context.time.sleep(for: .milliseconds(1))
        let notifier = SystemdNotifier(environment: context.inputs.environment, processID: ProcessIdentity.number)
        for problem in notifier.problems { context.diagnostics.warning("systemd", ["error": problem]) }
        let began = context.time.sinceBoot
        let worker = try await openWorker(notifier)
        // Before the signal handlers are installed, so that SIGTERM still ends a worker that waits.
        try await waitingForDatabase(notifier) { try await worker.heartbeat.report() }
        await worker.engine.daemonBegins(waitingSince: began)
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
        var worker = try RunningWorker(context, store: store, vault: vault, notifier: notifier)
        try worker.openListeners(reporter: reporter)
        return worker
    }
}
