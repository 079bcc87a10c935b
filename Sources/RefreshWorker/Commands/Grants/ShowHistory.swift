import Base
import Scheduler
import Storage

extension Command {
    /// `grants history USER`: prints the events of one grant.
    static let showHistory = Command(
        words: ["grants", "history"],
        summary: "show the history of a user's grant, the latest event first",
        discussion: """
            Shows when tokens were brought, when the state changed and why, and when Google returned another refresh \
            token or other scopes: the last hundred events, and the last time that tokens were brought.
            """,
        operands: [.user("the user of the grant")],
        options: [.connection, .json],
        settings: [.config, .database, .logLevel],
        examples: ["refresh-worker grants history alice": "since when is alice disconnected, and why?"],
        exitCodes: .ofDatabase(.unknownUser)
    ) { arguments, context, output in
        let user = arguments.operand
        let history = try await StoredGrant.read(
            ofUser: user,
            connection: arguments.connection,
            eventsAtMost: Retention.eventsPerGrant + 1,
            by: context
        ).history
        for event in history { output.answer(event.line, json: event.write) }
        if history.isEmpty && !output.isJSON {
            Output.error.line("the grant of user \(DisplayedText(user)) has no history yet")
        }
        return .success
    }
}

/// An event of a grant's history.
extension GrantEvent {
    /// The event for people.
    var line: String {
        var change = to.rawValue
        if let from, from != to { change = "\(from.rawValue) -> \(change)" }
        if reason != .none { change += ", \(reason)" }
        return "\(at.iso8601Seconds)  \(kind.rawValue.padding(to: 13))  \(change) (generation \(generation))"
    }

    /// Adds the fields for programs.
    func write(to line: inout JSONLine) {
        line.field("at", at.iso8601)
        line.field("event", kind.rawValue)
        line.fieldOrNull("from", from?.rawValue)
        line.field("to", to.rawValue)
        line.fieldOrNull("reason", reason == .none ? nil : reason.rawValue)
        line.field("generation", generation)
        line.field("grant", grant.description)
    }
}
