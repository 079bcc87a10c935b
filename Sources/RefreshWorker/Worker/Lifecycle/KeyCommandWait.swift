import Base
import Crypto
import Telemetry

/// The wait of a starting daemon for a `--key-command` that fails.
///
/// Without the key ring a worker can do nothing. If it ended instead, the failed starts would use up systemd's start
/// limit, and a KMS that was away for some minutes would leave the worker stopped. A missing program and an output that
/// is no key ring are not waited for: only a person can repair them. SIGTERM ends the wait at once.
struct KeyCommandWait {
    private static let firstPause: Duration = .seconds(1)
    /// With the limit of a run it is shorter than ``DatabaseWait/startExtension``.
    static let maximumPause: Duration = .seconds(20)

    private let context: CommandContext
    private let notifier: SystemdNotifier

    init(_ context: CommandContext, notifier: SystemdNotifier) {
        self.context = context
        self.notifier = notifier
    }

    /// Opens the key ring, again and again while the command fails.
    func run<Answer: Sendable>(_ open: @escaping @Sendable () throws -> Answer) async throws -> Answer {
        var reported: String?
        var pause = Self.firstPause
        while true {
            do {
                let answer = try await BlockingCallQueue.keyCommand.run(open)
                if reported != nil { context.diagnostics.notice("the key command works again") }
                return answer
            } catch let error as FileError where error.kind == .program {
                if error.description != reported {
                    context.diagnostics.error("waiting for the key command", ["error": error.description])
                    reported = error.description
                }
                notifier.notify(
                    [.extendStart(by: DatabaseWait.startExtension), .status("waiting: \(error)")],
                    diagnostics: context.diagnostics
                )
            }
            // Randomised, so that many workers do not ask the KMS at the same moment.
            try await context.time.sleep(for: pause * (0.5 + context.random.nextUnit() / 2))
            pause = min(pause * 2, Self.maximumPause)
        }
    }
}
