import Base
import Status
import Storage

/// `status --watch`: redraws the report on a terminal, and elsewhere writes one line for each change.
///
/// A database that is out of reach for a while does not end it. One that cannot be opened at the start, or must not be
/// used any more, ends it with the exit code of an unknown status.
struct StatusWatch {
    private static let interval: Duration = .seconds(2)

    private let context: CommandContext
    private let output: CommandOutput
    private let redraws: Bool
    /// `nil` at the start and after a problem: then every fact counts as changed.
    private var former: StatusSnapshot?
    private var problem: String?

    private init(_ context: CommandContext, printingTo output: CommandOutput) {
        self.context = context
        self.output = output
        redraws = Output.standard.isTerminal && !output.isJSON
    }

    static func run(in context: CommandContext, printingTo output: CommandOutput) async throws -> ExitCode {
        try await context.withExistingStore(for: .reading) { store in
            let source = context.status(from: store)
            var watch = StatusWatch(context, printingTo: output)
            while true {
                do {
                    watch.show(try await source.snapshot())
                } catch let error as StoreError {
                    try watch.show(CommandError(error))
                }
                try await context.time.sleep(for: interval)
            }
        }
    }

    private mutating func show(_ snapshot: StatusSnapshot) {
        if redraws {
            Output.standard.write(DocumentFolder.current.located(snapshot.text(for: output.form)).redrawn)
        } else {
            let changes = snapshot.changes(since: former)
            for line in snapshot.lines(of: changes, asJSON: output.isJSON) {
                Output.standard.line(DocumentFolder.current.located(line))
            }
        }
        former = snapshot
        problem = nil
    }

    /// Shows an error that might pass, and throws any other.
    private mutating func show(_ error: CommandError) throws {
        guard [.inputOutput, .leftForLater].contains(error.exitCode) else { throw error }
        if redraws {
            Output.standard.write("\(context.time.now.iso8601Seconds)  \(error.message)\n".redrawn)
        } else if problem != error.message {
            Output.error.line("refresh-worker: \(error.message)")
        }
        former = nil
        problem = error.message
    }
}

extension String {
    /// The text to write over a former one on a terminal: erasing the screen first would make it flicker.
    ///
    /// https://man7.org/linux/man-pages/man4/console_codes.4.html has the codes to move to the upper left corner, and
    /// to erase the rest of a line and of the screen.
    var redrawn: String { "\u{1b}[H" + replacing("\n", with: "\u{1b}[K\n") + "\u{1b}[J" }
}
