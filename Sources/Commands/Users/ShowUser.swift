import Base
import Storage
import Telemetry
import Worker

/// `users show USER`: prints what is stored about a user, and the state of the user's grant.
struct ShowUser: Command {
    static let specification = CommandSpecification(
        words: ["users", "show"],
        summary: "show a user's data and the state of the user's grant",
        discussion: "Shows what is stored about the user, never a token. grants show has more about the grant.",
        operands: [.user("the user to show")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [Example("refresh-worker users show alice", "who is alice?")],
        exitCodes: .ofDatabase(.unknownUser)
    )

    private let id: String

    init(_ arguments: CommandArguments) { id = arguments.operand }

    func run(in context: CommandContext) async throws -> ExitCode {
        let (user, grant) = try await context.withExistingStore(for: .reading) { store in
            guard let user = try await store.user(id) else { throw CommandFailure(unknownUser: id) }
            return (user, try await store.grant(ofUser: id))
        }
        let text = UserReport.lines(about: user, grant: grant, at: context.time.now).joined(separator: "\n")
        context.answer(text) { UserDocument.write(user, grant: grant, to: &$0) }
        return .success
    }
}

extension CommandFailure {
    init(unknownUser id: String) {
        self.init(.unknownUser, "no user \(DisplayedText(id)) is stored, or the user was deleted")
    }
}

/// A user as JSON: the output of `users list` and `users show`.
enum UserDocument {
    static func write(_ user: User, to line: inout JSONLine) {
        line.field("user_id", user.id)
        line.fieldOrNull("email", user.email)
        if let isVerified = user.emailIsVerified {
            line.field("email_verified", isVerified)
        } else {
            line.null("email_verified")
        }
        line.fieldOrNull("name", user.name)
        line.fieldOrNull("picture", user.picture)
        line.fieldOrNull("google_user_id", user.googleUserID)
        line.field("is_active", user.isActive)
        line.field("created_at", user.createdAt.iso8601)
        line.fieldOrNull("last_login", user.lastLoginAt?.iso8601)
        line.fieldOrNull("deleted_until", user.deletedUntil?.iso8601)
    }

    /// Adds the same fields and the user's grant, as `grants show` prints it.
    static func write(_ user: User, grant: Grant?, to line: inout JSONLine) {
        write(user, to: &line)
        if let grant {
            line.object("grant") { GrantDocument.write(grant, to: &$0) }
        } else {
            line.null("grant")
        }
    }
}

/// Everything known about one user, for people.
enum UserReport {
    static func lines(about user: User, grant: Grant?, at now: Timestamp) -> [String] {
        let email = user.email.map { address in
            let isVerified = user.emailIsVerified.map { $0 ? ", verified" : ", not verified" } ?? ""
            return TerminalText.escaped(address) + isVerified
        }
        return FactList.lines([
            ("user", TerminalText.escaped(user.id)),
            (
                "state",
                user.deletedUntil.map { "deleted; the id is refused until \(FactList.time($0, now))" } ?? user.status
            ),
            ("e-mail", email ?? "-"),
            ("name", (user.name ?? grant?.owner.name).map { TerminalText.escaped($0) } ?? "-"),
            ("google account", user.googleUserID.map { "id \(TerminalText.escaped($0))" } ?? "id unknown"),
            ("last sign-in", FactList.time(user.lastLoginAt, now)),
            ("created", FactList.time(user.createdAt, now)),
            ("grant", self.grant(grant, now)),
        ])
    }

    private static func grant(_ grant: Grant?, _ now: Timestamp) -> String {
        guard let grant else { return "none" }
        let reason = grant.reason == .none ? "" : ", \(grant.reason)"
        return "\(grant.state.rawValue)\(reason), since \(FactList.time(grant.since, now))"
    }
}

extension User {
    /// The user's status in a word.
    var status: String { isDeleted ? "deleted" : isActive ? "active" : "inactive" }
}
