import Base
import Scheduler
import Storage
package import Worker

/// `grants show USER` and `grants history USER`: print one grant without its tokens.
extension CommandContext {
    package func showGrant(of user: String, isJSON: Bool) async throws -> ExitCode {
        // One more than is shown, to know if there are more.
        let (grant, history) = try await readGrant(of: user, eventsAtMost: GrantReport.historyLimit + 1)
        if isJSON {
            Output.standard.line(GrantDocument.lineWithWarnings(of: grant, at: time.now).bytes)
        } else {
            GrantReport.lines(about: grant, history: history, at: time.now).forEach(Output.standard.line)
        }
        return .success
    }

    package func showHistory(of user: String, isJSON: Bool) async throws -> ExitCode {
        let (_, history) = try await readGrant(of: user, eventsAtMost: Retention.eventsPerGrant + 1)
        for event in history {
            Output.standard.line(isJSON ? GrantDocument.line(of: event).text : GrantReport.line(event))
        }
        if history.isEmpty && !isJSON {
            Output.error.line("the grant of user \(DisplayedText(user)) has no history yet")
        }
        return .success
    }

    private func readGrant(of user: String, eventsAtMost count: Int) async throws -> (Grant, [GrantEvent]) {
        try await withExistingStore(for: .reading) { store in
            guard let grant = try await store.grant(ofUser: user) else {
                throw CommandFailure(VendingFailure.unknownUser, ofUser: user)
            }
            return (grant, try await store.events(of: grant.id, atMost: count))
        }
    }
}
