import Base
import Storage
import Telemetry
package import Worker

/// `status --watch`: shows the status until a signal ends it.
extension CommandContext {
    private static let watchInterval: Duration = .seconds(2)
    /// Moves to the upper left corner; see https://man7.org/linux/man-pages/man4/console_codes.4.html.
    private static let home = "\u{1b}[H"
    private static let eraseRestOfLine = "\u{1b}[K"
    private static let eraseRestOfScreen = "\u{1b}[J"

    /// Redraws the report on a terminal; writes one line for each change elsewhere.
    ///
    /// A database that is out of reach for a while does not end it. One that cannot be opened at the start, or must
    /// not be used any more, ends it with the exit code of an unknown status.
    package func watchStatus(asJSON isJSON: Bool) async throws -> ExitCode {
        do {
            return try await watch(asJSON: isJSON)
        } catch {
            throw CommandFailure(.cannotTell, CommandFailure(error).message)
        }
    }

    private func watch(asJSON isJSON: Bool) async throws -> ExitCode {
        try await withExistingStore(for: .reading) { store in
            var former: StatusFacts?
            var formerProblem: String?
            while true {
                do {
                    let report = try await statusReport(from: store)
                    let facts = StatusFacts(report)
                    if redraws(asJSON: isJSON) {
                        Output.standard.write(Self.redrawn(report.text))
                    } else {
                        let changes = facts.changes(since: formerProblem == nil ? former : nil)
                        Self.lines(of: changes, report, asJSON: isJSON).forEach(Output.standard.line)
                    }
                    (former, formerProblem) = (facts, nil)
                } catch let error as StoreError {
                    let failure = CommandFailure(error)
                    guard [.inputOutput, .leftForLater].contains(failure.exitCode) else { throw failure }
                    if redraws(asJSON: isJSON) {
                        Output.standard.write(Self.redrawn("\(time.now.iso8601Seconds)  \(failure.message)\n"))
                    } else if formerProblem != failure.message {
                        Output.error.line("refresh-worker: \(failure.message)")
                    }
                    formerProblem = failure.message
                }
                try await time.sleep(for: Self.watchInterval)
            }
        }
    }

    private func redraws(asJSON isJSON: Bool) -> Bool { Output.standard.isTerminal && !isJSON }

    /// Returns the text to write over the former one: erasing the screen first would make it flicker.
    static func redrawn(_ text: String) -> String {
        home + text.replacing("\n", with: eraseRestOfLine + "\n") + eraseRestOfScreen
    }

    /// Returns a line for each changed fact; in JSON the whole report, if there is a change.
    static func lines(of changes: [StatusFacts.Fact], _ report: StatusReport, asJSON isJSON: Bool) -> [String] {
        guard !isJSON else { return changes.isEmpty ? [] : [report.json.text] }
        return changes.map { "\(report.at.iso8601Seconds)  \($0.name): \($0.text)" }
    }
}
