import Storage

/// The form in which an operator asks for a user, and the answer.
extension StatusPage {
    /// The events of a history that are shown: with all hundred the page would be too large.
    private static let eventLimit = 20
    private static let userLimit = 255

    var lookupForm: HTML {
        element("form", ["action": "users", "method": "get", "role": "search"]) {
            element("label", ["for": "user"]) { "User" }
            HTML.tag(
                "input",
                [
                    "id": "user", "name": "user", "type": "text", "required": "", "maxlength": "\(Self.userLimit)",
                    "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false",
                    "aria-describedby": "credential",
                ]
            )
            element("button") { "Look up" }
            element("p", ["id": "credential"]) { "The browser asks for the name and the credential of an operator." }
        }
    }

    func lookupSection(_ lookup: Lookup) -> HTML {
        section("User", id: "lookup") {
            switch lookup {
            case .unknownUser(let user):
                element("p") {
                    "No grant of the user "
                    userName(user)
                    " is stored."
                }
            case .found(let grant, let history):
                element("p", ["class": "user"]) { userName(grant.userID) }
                facts(of: grant)
                events(history, of: grant)
            }
        }
    }

    private static func meaning(of state: GrantState) -> Meaning {
        switch state {
        case .active: .good
        case .retrying: .neutral
        case .suspended, .reauthRequired, .disconnected: .bad
        }
    }

    private func userName(_ user: String) -> HTML {
        element("bdi", ["class": "code"]) { Self.shortened(user, limit: Self.userLimit) }
    }

    private func facts(of grant: Grant) -> HTML {
        element("dl") {
            fact("State") {
                label(grant.state.rawValue, Self.meaning(of: grant.state))
                " \(grant.state.meaning) Since "
                time(grant.since)
            }
            fact("Reason") { code(grant.reason.rawValue) }
            fact("Due") { time(grant.dueAt, otherwise: "nothing is planned") }
            fact("Last success") { time(grant.lastSuccessAt, otherwise: "none") }
            fact("Last attempt") { time(grant.lastAttemptAt, otherwise: "none") }
            if grant.attempts > 0 {
                fact("Failures") {
                    "\(Self.number(grant.attempts)) in a row"
                    if let since = grant.failingSince {
                        ", since "
                        time(since)
                    }
                }
            }
            fact("Access token") {
                if let token = grant.accessToken {
                    token.expiresAt > at ? "stored, valid until " : "stored, expired "
                    time(token.expiresAt)
                } else {
                    "none"
                }
            }
            fact("Refresh token") {
                grant.refreshToken == nil ? "none" : "stored, version \(grant.generation)"
                if let end = grant.refreshToken?.expiresAt {
                    end > at ? ", ends " : ", ended "
                    time(end)
                }
            }
            fact("Client id") { name(grant.clientID) }
            fact("Grant") { code(grant.id.description) }
        }
    }

    @HTMLBuilder private func fact(_ title: String, @HTMLBuilder content: () -> HTML) -> HTML {
        element("dt") { title }
        element("dd") { content() }
    }

    private func events(_ history: [GrantEvent], of grant: Grant) -> HTML {
        let newest = history.sorted { $0.at > $1.at }
        let shown = newest.prefix(Self.eventLimit)
        let all = Self.count(history.count, "event")
        return table(
            history.count > shown.count
                ? "The last \(shown.count) of \(all). All of them: refresh-worker grants history"
                : "The history of the grant.",
            columns: ["Time", "Event", "State", "Reason"],
            rows: shown.map { event in
                [
                    time(event.at), code(event.kind.rawValue),
                    change(from: event.from?.rawValue, to: event.to.rawValue),
                    code(event.reason.rawValue),
                ]
            }
        )
    }
}
