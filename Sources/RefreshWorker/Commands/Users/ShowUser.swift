import Base
import Records
import Storage

extension Command {
    /// `users show USER`: prints what is stored about a user, and the state of the user's connections.
    static let showUser = Command(
        words: ["users", "show"],
        summary: "show a user's data and the state of the user's connections",
        discussion: "Shows what is stored about the user, never a token. grants show has more about each connection.",
        operands: [.user("the user to show")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: ["refresh-worker users show alice": "who is alice?"],
        exitCodes: .ofDatabase(.unknownUser)
    ) { arguments, context, output in
        let id = arguments.operand
        let (user, grants) = try await context.withExistingStore(for: .reading) { store in
            guard let user = try await store.user(id) else { throw CommandError(unknownUser: id) }
            return (user, try await store.grants(ofUser: id))
        }
        let lines = user.lines(with: grants, at: context.time.now)
        output.answer(lines.joined(separator: "\n")) { user.write(with: grants, to: &$0) }
        return .success
    }
}

extension CommandError {
    init(unknownUser id: String) {
        self.init(.unknownUser, "no user \(DisplayedText(id)) is stored, or the user was deleted")
    }
}
