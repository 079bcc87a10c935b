import Clocks
import JSON
import Observability
import Store
package import WorkerConfiguration
import WorkerLifecycle

/// `status --watch`: shows the status until a signal ends it.
extension CommandContext {
    private static let watchInterval: Duration = .seconds(2)
    /// Moves to the upper left corner and erases the screen
    /// (https://man7.org/linux/man-pages/man4/console_codes.4.html).
    private static let eraseScreen = "\u{1b}[H\u{1b}[2J"

    /// Redraws the report on a terminal; writes one line for each change elsewhere.
    package func watchStatus(asJSON isJSON: Bool) async throws -> ExitCode {
        try await withExistingStore(for: .reading) { store in
            var former: StatusFacts?
            while true {
                let report = try await statusReport(from: store)
                let facts = StatusFacts(report)
                if Output.standard.isTerminal && !isJSON {
                    Output.standard.write(Self.eraseScreen + report.text)
                } else {
                    Self.lines(of: facts.changes(since: former), report, asJSON: isJSON).forEach(Output.standard.line)
                }
                former = facts
                try await time.sleep(for: Self.watchInterval)
            }
        }
    }

    /// Returns a line for each changed fact; in JSON the whole report, if there is a change.
    static func lines(of changes: [StatusFacts.Fact], _ report: StatusReport, asJSON isJSON: Bool) -> [String] {
        guard !isJSON else { return changes.isEmpty ? [] : [report.json.text] }
        return changes.map { "\(report.at.iso8601Seconds)  \($0.name): \($0.text)" }
    }
}
