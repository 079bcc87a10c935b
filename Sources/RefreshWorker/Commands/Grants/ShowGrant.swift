import Base
import Records
import Scheduler
import Storage

extension Command {
    /// `grants show USER`: prints one grant without its tokens.
    static let showGrant = Command(
        words: ["grants", "show"],
        summary: "show everything known about a user's grant, and its history",
        discussion: "Shows the grant's state, its reason and time, its due time and its history, never a token.",
        operands: [.user("the user whose grant to show")],
        options: [.connection, .json],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: ["refresh-worker grants show alice": "what happened to alice's grant"],
        exitCodes: .ofDatabase(.unknownUser)
    ) { arguments, context, output in
        let user = arguments.operand
        // One more than is shown, to know if there are more.
        let stored = try await StoredGrant.read(
            ofUser: user,
            connection: arguments.connection,
            eventsAtMost: Grant.maximumEvents + 1,
            by: context
        )
        let now = context.time.now
        let lines = stored.grant.lines(
            with: stored.history,
            waiting: stored.wait,
            besides: stored.others,
            at: now,
            isColoured: output.isColoured
        )
        output.answer(lines.joined(separator: "\n")) { line in
            stored.grant.writeWithWarnings(to: &line, at: now)
            guard !arguments.has("connection") else { return }
            line.objects("connections", [stored.grant] + stored.others) { $0.writeWithWarnings(to: &$1, at: now) }
        }
        return .success
    }
}

extension Grant {
    /// The number of events of its history that are shown with a grant.
    fileprivate static let maximumEvents = 50

    var stateWithReason: String { state.rawValue + (reason == .none ? "" : ", \(reason)") }

    /// Everything known about the grant, for people.
    func lines(
        with history: [GrantEvent],
        waiting wait: String? = nil,
        besides others: [Grant] = [],
        at now: Timestamp,
        isColoured: Bool = false
    ) -> [String] {
        func end(_ time: Timestamp) -> String {
            guard time <= now else { return "ends \(time.shown(at: now))" }
            let word = isColoured ? "\u{1b}[31mexpired\u{1b}[0m" : "expired"
            return "\(word) \(time.shown(at: now))"
        }
        let access = accessToken.map { end($0.expiresAt) }
        var refresh = refreshToken == nil ? "none" : "stored"
        if let expiresAt = refreshToken?.expiresAt { refresh += ", " + end(expiresAt) }
        if let key = refreshToken?.bindingKeyID { refresh += ", bound to key \(key)" }
        var tries = "\(failures)"
        if let failingSince { tries += " since \(failingSince.shown(at: now))" }
        let state = [stateWithReason, wait].compactMap(\.self).joined(separator: "; ")
        let labels = labels.sorted.map { "\($0.name)=\($0.value)".escapingInvisible }
        let facts: KeyValuePairs<String, String> = [
            "user": userID.escapingInvisible,
            "connection": connection.description,
            "labels": labels.isEmpty ? "-" : labels.joined(separator: ", "),
            "grant": id.description,
            "state": state,
            "since": since.shown(at: now),
            "google account": owner.line,
            "scope": scope.isEmpty ? "-" : scope.escapingInvisible,
            "client id": clientID.escapingInvisible,
            "access token": access ?? "none",
            "refresh token": refresh,
            "due": dueAt?.shown(at: now) ?? "-",
            "last success": lastSuccessAt?.shown(at: now) ?? "-",
            "last try": lastAttemptAt?.shown(at: now) ?? "-",
            "failed tries": tries,
            "generation": "\(generation)",
            "stored": createdAt.shown(at: now),
        ]
        var lines = facts.lines
        lines += GrantWarning.all(of: self, at: now).map { "warning: \($0.sentence)" }
        if !others.isEmpty { lines += ["", "other connections of the user:"] }
        lines += others.map { other in
            let account = other.owner.email?.escapingInvisible ?? "e-mail unknown"
            return "  \(other.connection): \(account), \(other.stateWithReason)"
        }
        lines += ["", "history, the latest first:"]
        lines += history.prefix(Self.maximumEvents).map { "  " + $0.line }
        if history.count > Self.maximumEvents { lines.append("  …") }
        return lines
    }
}

extension Grant.Owner {
    fileprivate var line: String {
        var parts = [email?.escapingInvisible ?? "e-mail unknown"]
        if let emailIsVerified { parts.append(emailIsVerified ? "verified" : "not verified") }
        if let name { parts.append(name.escapingInvisible) }
        parts.append(googleUserID.map { "id \($0.escapingInvisible)" } ?? "id unknown")
        return parts.joined(separator: ", ")
    }
}
