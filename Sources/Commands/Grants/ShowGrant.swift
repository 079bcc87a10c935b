import Base
import Scheduler
import Storage
import Telemetry
import Worker

/// `grants show USER`: prints one grant without its tokens.
struct ShowGrant: Command {
    static let specification = CommandSpecification(
        words: ["grants", "show"],
        summary: "show everything known about a user's grant, and its history",
        discussion: "Shows the grant's state, its reason and time, its due time and its history, never a token.",
        operands: [.user("the user whose grant to show")],
        options: [.json],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [Example("refresh-worker grants show alice", "what happened to alice's grant")],
        exitCodes: .ofDatabase(.unknownUser)
    )

    private let user: String

    init(_ arguments: CommandArguments) { user = arguments.operand }

    func run(in context: CommandContext) async throws -> ExitCode {
        // One more than is shown, to know if there are more.
        let (grant, history) = try await context.readGrant(of: user, eventsAtMost: GrantReport.historyLimit + 1)
        let now = context.time.now
        context.answer(GrantReport.lines(about: grant, history: history, at: now).joined(separator: "\n")) { line in
            GrantDocument.writeWithWarnings(grant, to: &line, at: now)
        }
        return .success
    }
}

/// `grants history USER`: prints the events of one grant.
struct ShowHistory: Command {
    static let specification = CommandSpecification(
        words: ["grants", "history"],
        summary: "show the history of a user's grant, the latest event first",
        discussion: """
            Shows when tokens were brought, when the state changed and why, and when Google returned another refresh \
            token or other scopes: the last hundred events, and the last time that tokens were brought.
            """,
        operands: [.user("the user of the grant")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [Example("refresh-worker grants history alice", "since when is alice disconnected, and why?")],
        exitCodes: .ofDatabase(.unknownUser)
    )

    private let user: String

    init(_ arguments: CommandArguments) { user = arguments.operand }

    func run(in context: CommandContext) async throws -> ExitCode {
        let (_, history) = try await context.readGrant(of: user, eventsAtMost: Retention.eventsPerGrant + 1)
        for event in history { context.answer(GrantReport.line(event)) { GrantDocument.write(event, to: &$0) } }
        if history.isEmpty && !context.printsJSON {
            Output.error.line("the grant of user \(DisplayedText(user)) has no history yet")
        }
        return .success
    }
}

extension CommandContext {
    fileprivate func readGrant(of user: String, eventsAtMost count: Int) async throws -> (Grant, [GrantEvent]) {
        try await withExistingStore(for: .reading) { store in
            guard let grant = try await store.grant(ofUser: user) else {
                throw CommandFailure(VendingFailure.unknownUser, ofUser: user)
            }
            return (grant, try await store.events(of: grant.id, atMost: count))
        }
    }
}

/// Everything known about one grant, for people.
enum GrantReport {
    /// The number of events of its history that are shown.
    static let historyLimit = 50

    static func lines(about grant: Grant, history: [GrantEvent], at now: Timestamp) -> [String] {
        let facts: [(name: String, value: String)] = [
            ("user", TerminalText.escaped(grant.userID)),
            ("grant", grant.id.description),
            ("state", grant.state.rawValue + (grant.reason == .none ? "" : ", \(grant.reason)")),
            ("since", FactList.time(grant.since, now)),
            ("google account", account(grant.owner)),
            ("scope", grant.scope.isEmpty ? "-" : TerminalText.escaped(grant.scope)),
            ("client id", TerminalText.escaped(grant.clientID)),
            ("access token", grant.accessToken.map { "ends \(FactList.time($0.expiresAt, now))" } ?? "none"),
            ("refresh token", refreshToken(grant.refreshToken, now)),
            ("due", FactList.time(grant.dueAt, now)),
            ("last success", FactList.time(grant.lastSuccessAt, now)),
            ("last try", FactList.time(grant.lastAttemptAt, now)),
            (
                "failed tries",
                "\(grant.attempts)" + (grant.failingSince.map { " since \(FactList.time($0, now))" } ?? "")
            ),
            ("generation", "\(grant.generation)"),
            ("stored", FactList.time(grant.createdAt, now)),
        ]
        var lines = FactList.lines(facts)
        lines += GrantWarning.all(of: grant, at: now).map { "warning: \($0.sentence)" }
        lines += ["", "history, the latest first:"]
        lines += history.prefix(historyLimit).map { "  " + line($0) }
        if history.count > historyLimit { lines.append("  …") }
        return lines
    }

    /// Returns one event of a history.
    static func line(_ event: GrantEvent) -> String {
        let former = event.from.map { $0 == event.to ? "" : "\($0.rawValue) -> " } ?? ""
        let reason = event.reason == .none ? "" : ", \(event.reason)"
        let kind = event.kind.rawValue
        let padding = String(repeating: " ", count: max(0, 13 - kind.count))
        return "\(event.at.iso8601Seconds)  \(kind)\(padding)  \(former)\(event.to.rawValue)\(reason)"
            + " (generation \(event.generation))"
    }

    private static func account(_ owner: Grant.Owner) -> String {
        var parts = [owner.email.map { TerminalText.escaped($0) } ?? "e-mail unknown"]
        if let isVerified = owner.emailIsVerified { parts.append(isVerified ? "verified" : "not verified") }
        if let name = owner.name { parts.append(TerminalText.escaped(name)) }
        parts.append(owner.googleUserID.map { "id \(TerminalText.escaped($0))" } ?? "id unknown")
        return parts.joined(separator: ", ")
    }

    private static func refreshToken(_ token: Grant.RefreshToken?, _ now: Timestamp) -> String {
        guard let token else { return "none" }
        return token.expiresAt.map { "stored, ends \(FactList.time($0, now))" } ?? "stored"
    }
}
