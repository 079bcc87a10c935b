import Base
import Storage
import Telemetry

/// The wait of a starting daemon for a database that might become usable.
///
/// It waits as long as necessary for a server that is away or for space on a full disk, and for workers of an older
/// version until a killed one counts as dead. If it ended instead, the failed starts would use up systemd's start
/// limit, and systemd would stop trying. Until the database is usable the worker does not serve. SIGTERM ends it at
/// once.
struct DatabaseWait {
    private static let firstPause: Duration = .milliseconds(500)
    private static let maximumPause: Duration = .seconds(5)
    /// Longer than a try and the pause after it.
    static let startExtension: Duration = .seconds(60)

    private let context: CommandContext
    private let notifier: SystemdNotifier

    init(_ context: CommandContext, notifier: SystemdNotifier) {
        self.context = context
        self.notifier = notifier
    }

    /// Runs a step of the start that needs the database, again and again while the wait is worth it.
    func run<Answer>(_ body: () async throws -> Answer) async throws -> Answer {
        var availability = DatabaseAvailability()
        var pause = Self.firstPause
        let began = context.time.sinceBoot
        while true {
            do {
                return try await body()
            } catch let error as StoreError {
                let error = await error.confirmed
                guard isWorthWaiting(error, since: began) else { throw error }
                if availability.failed(with: error.code) {
                    context.diagnostics.error("waiting for the database", ["error": error.message])
                }
                extendStart(while: "waiting: \(error.message)")
            }
            // Randomised, so that many workers do not return at the same moment.
            try await context.time.sleep(for: pause * (0.5 + context.random.nextUnit() / 2))
            pause = min(pause * 2, Self.maximumPause)
        }
    }

    private func isWorthWaiting(_ error: StoreError, since began: BootInstant) -> Bool {
        switch context.configuration.database {
        case .file(let path):
            // It has no limit: who frees space does not think of restarting.
            if isDiskFull(error, at: path) { return true }
            // A fault of the disk or a lack of descriptors is waited for as long as a killed worker of an older
            // version. Then systemd restarts the worker.
            let waited = context.time.sinceBoot - began
            return [.inUse, .ioFailure].contains(error.code) && waited < WorkerReport.lifetime + Self.maximumPause
        case .server:
            return error.isServerAway
        }
    }

    /// SQLite calls it an input or output error if there is no space for the index of its log.
    private func isDiskFull(_ error: StoreError, at path: String) -> Bool {
        guard error.code == .ioFailure else { return error.code == .diskFull }
        do {
            return try Folder.freeSpace(in: PathResolver.absolute(path).parentFolder) < 1 << 20
        } catch {
            // The wait then has its limit, and ends with the database's own error.
            context.diagnostics.debug("free space", ["error": "\(error)"])
            return false
        }
    }

    /// Asks systemd for more time to start.
    func extendStart(while status: String) {
        notifier.notify([.extendStart(by: Self.startExtension), .status(status)], diagnostics: context.diagnostics)
    }
}

extension StoreError {
    /// `true` if the server might recover without help.
    ///
    /// A refusal lasts until a person fixes its cause, so it is reported immediately to the person who starts the
    /// worker.
    fileprivate var isServerAway: Bool { mayPass && code != .refused }
}
