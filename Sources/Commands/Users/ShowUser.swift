import Base
import Storage
import Worker

extension Command {
    /// `users show USER`: prints what is stored about a user, and the state of the user's grant.
    static let showUser = Command(
        words: ["users", "show"],
        summary: "show a user's data and the state of the user's grant",
        discussion: "Shows what is stored about the user, never a token. grants show has more about the grant.",
        operands: [.user("the user to show")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [("refresh-worker users show alice", "who is alice?")],
        exitCodes: .ofDatabase(.unknownUser)
    ) { arguments, context in
        let id = arguments.operand
        let (user, grant) = try await context.withExistingStore(for: .reading) { store in
            guard let user = try await store.user(id) else { throw CommandFailure(unknownUser: id) }
            return (user, try await store.grant(ofUser: id))
        }
        let lines = user.lines(with: grant, at: context.time.now)
        context.answer(lines.joined(separator: "\n")) { user.write(with: grant, to: &$0) }
        return .success
    }
}

extension CommandFailure {
    init(unknownUser id: String) {
        self.init(.unknownUser, "no user \(DisplayedText(id)) is stored, or the user was deleted")
    }
}

/// A user as `users list` and `users show` print it.
extension User {
    /// Adds the fields for programs.
    func write(to line: inout JSONLine) {
        line.field("user_id", id)
        line.fieldOrNull("email", email)
        if let emailIsVerified {
            line.field("email_verified", emailIsVerified)
        } else {
            line.null("email_verified")
        }
        line.fieldOrNull("name", name)
        line.fieldOrNull("picture", picture)
        line.fieldOrNull("google_user_id", googleUserID)
        line.field("is_active", isActive)
        line.field("created_at", createdAt.iso8601)
        line.fieldOrNull("last_login", lastLoginAt?.iso8601)
        line.fieldOrNull("deleted_until", deletedUntil?.iso8601)
    }

    /// Adds the same fields and the user's grant, as `grants list` prints it.
    func write(with grant: Grant?, to line: inout JSONLine) {
        write(to: &line)
        if let grant {
            line.object("grant", grant.write)
        } else {
            line.null("grant")
        }
    }

    /// Everything known about the user, for people.
    func lines(with grant: Grant?, at now: Timestamp) -> [String] {
        let deleted = deletedUntil.map { "deleted; the id is refused until \($0.shown(at: now))" }
        let verified = emailIsVerified.map { $0 ? ", verified" : ", not verified" } ?? ""
        let facts: [(name: String, value: String)] = [
            ("user", id.escapedForTerminal),
            ("state", deleted ?? status),
            ("e-mail", email.map { $0.escapedForTerminal + verified } ?? "-"),
            ("name", (name ?? grant?.owner.name)?.escapedForTerminal ?? "-"),
            ("google account", googleUserID.map { "id \($0.escapedForTerminal)" } ?? "id unknown"),
            ("last sign-in", lastLoginAt?.shown(at: now) ?? "-"),
            ("created", createdAt.shown(at: now)),
            ("grant", grant.map { "\($0.stateWithReason), since \($0.since.shown(at: now))" } ?? "none"),
        ]
        return facts.lines
    }

    /// The user's status in a word.
    var status: String { isDeleted ? "deleted" : isActive ? "active" : "inactive" }
}
