import Base
import Scheduler
import Storage
import Synchronization
import Telemetry

/// The worker in the foreground: opens its parts, and runs it until a signal.
struct Daemon {
    private static let upgrading = "bringing the database up to date"

    private let context: CommandContext
    private let notifier: SystemdNotifier
    private let wait: DatabaseWait

    init(_ context: CommandContext, notifier: SystemdNotifier) {
        self.context = context
        self.notifier = notifier
        wait = DatabaseWait(context, notifier: notifier)
    }

    static func run(_ context: CommandContext) async throws -> ExitCode {
        let environment = context.inputs.environment
        try context.configuration.checkServing(environment: environment)
        // The first sleep takes Dispatch's descriptor for all later ones. Without it they would never end.
        try await context.time.sleep(for: .milliseconds(1))
        let notifier = SystemdNotifier(environment: environment, processID: ProcessSetup.id)
        return try await Daemon(context, notifier: notifier).run()
    }

    private func run() async throws -> ExitCode {
        for problem in notifier.problems { context.diagnostics.warning("systemd", ["error": problem]) }
        // Before the signal handlers are installed, so that SIGTERM still ends a worker that waits.
        var worker = try await openWorker()
        // Before the listeners open, so that SIGTERM lets their first requests complete.
        let signals = await SignalStream.start()
        try await worker.openListeners()
        worker.metrics.record(.started(mode: "daemon"))
        context.diagnostics.notice(
            "started",
            ["version": Version.current, "database": "\(context.configuration.database)"]
        )
        return await worker.work(until: signals)
    }

    /// Opens all parts except the listeners, which answer at once: before them, the key ring must be known to be this
    /// database's, and the other workers must know this one.
    func openWorker() async throws -> Worker {
        let began = context.time.sinceBoot
        let vault = try await KeyCommandWait(context, notifier: notifier).run { [context] in try context.openVault() }
        try context.checkBinding(with: vault)
        let store = try await wait.run { try await openStore() }
        // Its first start makes the id of the database, which is a commit.
        _ = try await wait.run { [context] in try await store.databaseID(from: context.random) }
        let worker = try await Worker(context, store: store, vault: vault, notifier: notifier)
        try await wait.run { try await worker.heartbeat.report() }
        await worker.engine.daemonBegins(waitingSince: began)
        return worker
    }

    /// Opens the database.
    ///
    /// While an older one is upgraded, it repeatedly asks systemd for more time.
    private func openStore() async throws -> any Store {
        let extending = Mutex<Task<Void, Never>?>(nil)
        defer { extending.withLock { $0?.cancel() } }
        return try await context.openStore {
            wait.extendStart(while: Self.upgrading)
            extending.withLock { extending in
                guard extending == nil else { return }
                extending = Task {
                    await context.time.repeat(every: DatabaseWait.startExtension / 3, immediately: false) {
                        wait.extendStart(while: Self.upgrading)
                    }
                }
            }
        }
    }
}
