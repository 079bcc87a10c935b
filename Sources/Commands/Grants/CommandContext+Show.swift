import Base
import Scheduler
import Storage
import Telemetry
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
