import Base
import Routes
import Scheduler
import Status
import Storage

extension Command {
    /// `grants show USER`: prints one grant without its tokens.
    static let showGrant = Command(
        words: ["grants", "show"],
        summary: "show everything known about a user's grant, and its history",
        discussion: "Shows the grant's state, its reason and time, its due time and its history, never a token.",
        operands: [.user("the user whose grant to show")],
        options: [.json],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: ["refresh-worker grants show alice": "what happened to alice's grant"],
        exitCodes: .ofDatabase(.unknownUser)
    ) { arguments, context in
        let user = arguments.operand
        // One more than is shown, to know if there are more.
        let stored = try await context.readGrant(of: user, eventsAtMost: Grant.maximumEvents + 1)
        let now = context.time.now
        let lines = stored.grant.lines(
            with: stored.history,
            waiting: stored.wait,
            at: now,
            isColoured: context.printsColours
        )
        context.answer(lines.joined(separator: "\n")) { line in
            stored.grant.writeWithWarnings(to: &line, at: now)
        }
        return .success
    }

    /// `grants history USER`: prints the events of one grant.
    static let showHistory = Command(
        words: ["grants", "history"],
        summary: "show the history of a user's grant, the latest event first",
        discussion: """
            Shows when tokens were brought, when the state changed and why, and when Google returned another refresh \
            token or other scopes: the last hundred events, and the last time that tokens were brought.
            """,
        operands: [.user("the user of the grant")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: ["refresh-worker grants history alice": "since when is alice disconnected, and why?"],
        exitCodes: .ofDatabase(.unknownUser)
    ) { arguments, context in
        let user = arguments.operand
        let history = try await context.readGrant(of: user, eventsAtMost: Retention.eventsPerGrant + 1).history
        for event in history { context.answer(event.line, json: event.write) }
        if history.isEmpty && !context.printsJSON {
            Output.error.line("the grant of user \(DisplayedText(user)) has no history yet")
        }
        return .success
    }
}

/// What the store knows about one user's grant.
private struct StoredGrant {
    var grant: Grant
    var history: [GrantEvent]
    /// Why the grant gets no refresh although it needs one.
    var wait: String?
}

extension CommandContext {
    fileprivate func readGrant(of user: String, eventsAtMost count: Int) async throws -> StoredGrant {
        try await withExistingStore(for: .reading) { store in
            guard let grant = try await store.grant(ofUser: user) else {
                throw CommandError(VendingError.unknownUser, ofUser: user)
            }
            return StoredGrant(
                grant: grant,
                history: try await store.events(of: grant.id, atMost: count),
                wait: try await wait(of: grant, in: store)
            )
        }
    }

    private func wait(of grant: Grant, in store: any Store) async throws -> String? {
        let now = time.now
        let client = ClientStatus(
            id: grant.clientID,
            stored: try await store.clientHealth()[grant.clientID],
            maxRate: configuration.maxRate,
            at: try await store.leaseTime(),
            wallClock: now
        )
        if let wait = client.wait(of: grant, at: now) { return wait }
        guard grant.needsRefresh(at: now), try await store.liveWorkers().isEmpty else { return nil }
        let lastPass = try await NotedTime.lastPass.read(from: store)
        if let lastPass, now - lastPass <= StatusSnapshot.tolerablePassInterval { return nil }
        return "waits: no worker is running"
    }
}

extension Grant {
    /// The number of events of its history that are shown with a grant.
    fileprivate static let maximumEvents = 50

    /// The state, with its reason if it has one.
    var stateWithReason: String { state.rawValue + (reason == .none ? "" : ", \(reason)") }

    /// Everything known about the grant, for people.
    func lines(
        with history: [GrantEvent],
        waiting wait: String? = nil,
        at now: Timestamp,
        isColoured: Bool = false
    ) -> [String] {
        func end(_ time: Timestamp) -> String {
            guard time <= now else { return "ends \(time.shown(at: now))" }
            let word = isColoured ? "\u{1b}[31mexpired\u{1b}[0m" : "expired"
            return "\(word) \(time.shown(at: now))"
        }
        let access = accessToken.map { end($0.expiresAt) }
        let refresh = refreshToken.map { "stored" + ($0.expiresAt.map { ", " + end($0) } ?? "") }
        let state = [stateWithReason, wait].compactMap(\.self).joined(separator: "; ")
        let facts: [(name: String, value: String)] = [
            ("user", userID.escapingInvisible),
            ("grant", id.description),
            ("state", state),
            ("since", since.shown(at: now)),
            ("google account", owner.line),
            ("scope", scope.isEmpty ? "-" : scope.escapingInvisible),
            ("client id", clientID.escapingInvisible),
            ("access token", access ?? "none"),
            ("refresh token", refresh ?? "none"),
            ("due", dueAt?.shown(at: now) ?? "-"),
            ("last success", lastSuccessAt?.shown(at: now) ?? "-"),
            ("last try", lastAttemptAt?.shown(at: now) ?? "-"),
            ("failed tries", "\(attempts)" + (failingSince.map { " since \($0.shown(at: now))" } ?? "")),
            ("generation", "\(generation)"),
            ("stored", createdAt.shown(at: now)),
        ]
        return facts.lines + GrantWarning.all(of: self, at: now).map { "warning: \($0.sentence)" }
            + ["", "history, the latest first:"] + history.prefix(Self.maximumEvents).map { "  " + $0.line }
            + (history.count > Self.maximumEvents ? ["  …"] : [])
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

/// An event of a grant's history.
extension GrantEvent {
    /// The event for people.
    fileprivate var line: String {
        let former = from.map { $0 == to ? "" : "\($0.rawValue) -> " } ?? ""
        let reason = reason == .none ? "" : ", \(reason)"
        return "\(at.iso8601Seconds)  \(kind.rawValue.padding(to: 13))  \(former)\(to.rawValue)\(reason)"
            + " (generation \(generation))"
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
