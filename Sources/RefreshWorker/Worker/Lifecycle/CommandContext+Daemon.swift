import Base
import Scheduler
import Storage
import Synchronization
import Telemetry

/// The worker in the foreground: opens the parts, runs their services, and stops them in reverse order.
extension CommandContext {
    func runDaemon() async throws -> ExitCode {
        try configuration.checkServing(environment: inputs.environment)
        // The first sleep takes Dispatch's descriptor for all later ones. Without it they would never end.
        try await time.sleep(for: .milliseconds(1))
        let notifier = SystemdNotifier(environment: inputs.environment, processID: ProcessSetup.id)
        for problem in notifier.problems { diagnostics.warning("systemd", ["error": problem]) }
        // Before the signal handlers are installed, so that SIGTERM still ends a worker that waits.
        var worker = try await openWorker(notifier)
        // Before the listeners open, so that SIGTERM lets their first requests complete.
        let signals = await SignalStream.start()
        try await worker.openListeners()
        worker.metrics.record(.started(mode: "daemon"))
        diagnostics.notice("started", ["version": Version.current, "database": "\(configuration.database)"])
        return await worker.work(until: signals)
    }

    /// Opens all parts except the listeners, which answer at once: before them, the key ring must be known to be this
    /// database's, and the other workers must know this one.
    func openWorker(_ notifier: SystemdNotifier) async throws -> Worker {
        let began = time.sinceBoot
        let vault = try openVault()
        let store = try await waitingForDatabase(notifier) { try await openStore(notifier) }
        let worker = try Worker(self, store: store, vault: vault, notifier: notifier)
        try await waitingForDatabase(notifier) { try await worker.heartbeat.report() }
        await worker.engine.daemonBegins(waitingSince: began)
        return worker
    }

    private static let firstPause: Duration = .milliseconds(500)
    private static let maximumPause: Duration = .seconds(5)
    /// Longer than a try and the pause after it.
    private static let startExtension: Duration = .seconds(60)
    private static let upgrading = "bringing the database up to date"

    /// Opens the database.
    ///
    /// While an older one is upgraded, it repeatedly asks systemd for more time.
    func openStore(_ notifier: SystemdNotifier) async throws -> any Store {
        let extending = Mutex<Task<Void, Never>?>(nil)
        defer { extending.withLock { $0?.cancel() } }
        return try await openStore {
            extendStart(notifier, while: Self.upgrading)
            extending.withLock { extending in
                guard extending == nil else { return }
                extending = Task {
                    await time.repeat(every: Self.startExtension / 3, immediately: false) {
                        extendStart(notifier, while: Self.upgrading)
                    }
                }
            }
        }
    }

    /// Runs a step of the start that needs the database, and retries while the database might become usable.
    ///
    /// It waits as long as necessary for a server that is away or for space on a full disk, and for workers of an older
    /// version until a killed one counts as dead. If it ended instead, the failed starts would use up systemd's start
    /// limit, and systemd would stop trying. Until the database is usable the worker does not serve. SIGTERM ends it at
    /// once.
    func waitingForDatabase<Answer>(
        _ notifier: SystemdNotifier,
        _ body: () async throws -> Answer
    ) async throws -> Answer {
        var availability = DatabaseAvailability()
        var pause = Self.firstPause
        let began = time.sinceBoot
        while true {
            do {
                return try await body()
            } catch let error as StoreError {
                let error = await CommandContext.confirmed(error)
                guard isWorthWaiting(error, since: began) else { throw error }
                if availability.failed(with: error.code) {
                    diagnostics.error("waiting for the database", ["error": error.message])
                }
                extendStart(notifier, while: "waiting: \(error.message)")
            }
            // Randomised, so that many workers do not return at the same moment.
            try await time.sleep(for: pause * (0.5 + random.nextUnit() / 2))
            pause = min(pause * 2, Self.maximumPause)
        }
    }

    private func isWorthWaiting(_ error: StoreError, since began: BootInstant) -> Bool {
        switch configuration.database {
        case .file(let path):
            // It has no limit: who frees space does not think of restarting.
            if isDiskFull(error, at: path) { return true }
            // A fault of the disk or a lack of descriptors is waited for as long as a killed worker of an older
            // version. Then systemd restarts the worker.
            let waited = time.sinceBoot - began
            return [.inUse, .ioFailure].contains(error.code) && waited < WorkerReport.lifetime + Self.maximumPause
        case .server:
            return error.isServerAway
        }
    }

    /// SQLite calls it an input or output error if there is no space for the index of its log.
    private func isDiskFull(_ error: StoreError, at path: String) -> Bool {
        guard error.code == .ioFailure else { return error.code == .diskFull }
        do {
            return try Folder.freeSpace(in: FileStatus.absolute(path).parentFolder) < 1 << 20
        } catch {
            // The wait then has its limit, and ends with the database's own error.
            diagnostics.debug("free space", ["error": "\(error)"])
            return false
        }
    }

    private func extendStart(_ notifier: SystemdNotifier, while status: String) {
        notifier.notify([.extendStart(by: Self.startExtension), .status(status)], diagnostics: diagnostics)
    }
}

extension StoreError {
    /// `true` if the server might recover without help.
    ///
    /// A refusal lasts until a person fixes its cause, so it is reported immediately to the person who starts the
    /// worker.
    fileprivate var isServerAway: Bool { mayPass && code != .refused }
}
