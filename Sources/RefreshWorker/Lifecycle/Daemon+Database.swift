import Clocks
import Observability
import Store
import Synchronization

extension Daemon {
    private static let firstPause: Duration = .milliseconds(500)
    private static let longestPause: Duration = .seconds(5)
    /// Longer than a try and the pause after it.
    private static let startExtension: Duration = .seconds(60)
    private static let upgrading = "bringing the database up to date"

    /// Opens the database; while an older one is brought up to date, systemd is asked for more time again and again.
    func openStore(_ notifier: SystemdNotifier) async throws -> any AccountStore {
        let extending = Mutex<Task<Void, Never>?>(nil)
        defer { extending.withLock { $0?.cancel() } }
        return try await workshop.openStore {
            extendStart(notifier, while: Self.upgrading)
            extending.withLock { extending in
                guard extending == nil else { return }
                extending = Task {
                    await Metronome.beat(every: Self.startExtension / 3, immediately: false) {
                        extendStart(notifier, while: Self.upgrading)
                    }
                }
            }
        }
    }

    /// Does what a start needs of the database; waits, for as long as it takes, for a server that is away, and for workers of
    /// an older version until one that was killed counts as dead.
    ///
    /// To end instead would use up the starts that systemd allows, and then nobody would try again. Until the database is
    /// there the worker serves nothing; a signal ends it at once.
    func waitingForDatabase<Answer>(
        _ notifier: SystemdNotifier,
        _ body: () async throws -> Answer
    ) async throws -> Answer {
        var standing = DatabaseStanding()
        var pause = Self.firstPause
        let began = workshop.time.sinceBoot
        while true {
            do {
                return try await body()
            } catch let error as StoreError {
                let error = await Workshop.confirmed(error)
                guard isWorthWaiting(error, since: began) else { throw error }
                if standing.failed(with: error.code) {
                    workshop.diagnostics.error("waiting for the database", ["error": error.message])
                }
                extendStart(notifier, while: "waiting: \(error.message)")
            }
            // Spread, so that many workers do not come back at one moment.
            try await Task.sleep(for: pause * (0.5 + workshop.random.nextUnit() / 2))
            pause = min(pause * 2, Self.longestPause)
        }
    }

    private func isWorthWaiting(_ error: StoreError, since began: BootInstant) -> Bool {
        switch workshop.configuration.database {
        case .file:
            // A passing fault of the disk, or a lack of descriptors, is worth the same time; then systemd tries again.
            [.inUse, .input].contains(error.code)
                && workshop.time.sinceBoot - began < WorkerReport.lifetime + Self.longestPause
        case .server: error.isServerAway
        }
    }

    private func extendStart(_ notifier: SystemdNotifier, while status: String) {
        do {
            try notifier.send(.extendStart(by: Self.startExtension), .status(status))
        } catch {
            workshop.diagnostics.debug("systemd", ["error": "\(error)"])
        }
    }
}

extension StoreError {
    /// Whether a server may come round by itself; what it refuses, it refuses until somebody has mended something, and
    /// whoever starts the worker is to hear of that at once.
    fileprivate var isServerAway: Bool { mayPass && code != .refused }
}
