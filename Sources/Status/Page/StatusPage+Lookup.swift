import Base
import Scheduler
import Storage

/// The form in which an operator asks for a user, and the answer: the user, or a list of grants.
extension StatusPage {
    /// The events of a history that are shown: with all hundred the page would be too large.
    private static let eventLimit = 20
    private static let userLimit = 255
    /// The longest handle of a user has 400 characters.
    private static let inputLimit = 512

    var lookupForm: HTML {
        // Not "get": an address, with the user's id or e-mail address in it, is logged by proxies. ``address`` is the
        // address of what was found.
        element("form", ["action": "users", "method": "post", "role": "search"]) {
            element("label", ["for": "user"]) { "User" }
            input(
                [
                    "id": "user", "name": "user", "type": "text", "value": enteredText, "required": "",
                    "maxlength": "\(Self.inputLimit)",
                    "placeholder": "id, e-mail or handle", "autocomplete": "off", "autocapitalize": "none",
                    "spellcheck": "false", "aria-describedby": "credential",
                ]
            )
            element("button") { "Look up" }
            element("p", ["id": "credential"]) { "The browser asks for the name and the credential of an operator." }
        }
    }

    /// What the field holds: the text that was looked up, or the user that a link led to.
    ///
    /// It is empty if the text has a character that the page escapes, or is too long: it would be another text in the
    /// field.
    private var enteredText: String {
        guard isAboutUser, let text = lookedUp ?? userOfLookup else { return "" }
        let isKept = text.utf8.count <= Self.inputLimit && !text.unicodeScalars.contains(where: \.isInvisible)
        return isKept ? text : ""
    }

    /// `false` for a list with filters, in which the field has no part.
    private var isAboutUser: Bool {
        switch lookup {
        case .found, .unknownUser, .list(_, nil, _, _): true
        case .list, nil: false
        }
    }

    /// The user whom the page shows, if there is one.
    private var userOfLookup: String? {
        switch lookup {
        case .found(let grant, _, _): grant.userID
        case .unknownUser(let user): user
        case .list(let grants, nil, _, _): grants.first?.userID
        case .list, nil: nil
        }
    }

    /// The address of a user or of the user's connections, with the id of a grant: proxies log addresses.
    private var address: String? {
        switch lookup {
        case .found(let grant, _, _):
            return "users?grant=\(grant.id)"
        case .list(let grants, nil, _, _):
            guard let first = grants.first, grants.allSatisfy({ $0.userID == first.userID }) else { return nil }
            return "users?connections-of=\(first.id)"
        case .list, .unknownUser, nil:
            return nil
        }
    }

    @HTMLBuilder private var addressNote: HTML {
        if let address {
            element("p", ["class": "facts"]) {
                element("a", ["id": "address", "href": address]) { "Link to this page" }
                " for a colleague who is an operator. It does not contain the user’s name."
            }
        }
    }

    private func input(_ attributes: KeyValuePairs<StaticString, String>) -> HTML { HTML.tag("input", attributes) }

    @HTMLBuilder func lookupSection(_ lookup: Lookup) -> HTML {
        switch lookup {
        case .list(let grants, let filter, let next, let count):
            section("Grants", id: "list") {
                if let filter { filterForm(filter, next: next) }
                list(grants, caption: caption(of: grants, filter: filter, count: count))
                addressNote
            }
        case .unknownUser(let user):
            section("User", id: "lookup") {
                element("p") {
                    "No grant of the user "
                    userName(user)
                    " is stored."
                }
            }
        case .found(let grant, let history, let buttons):
            section("User", id: "lookup") {
                element("p", ["class": "user"]) { userName(grant.userID) }
                addressNote
                facts(of: grant)
                for change in Change.allCases { button(for: change, sealed: buttons[change]) }
                events(history, of: grant)
            }
        }
    }

    /// The button of a change, behind a first click that opens the question.
    @HTMLBuilder private func button(for change: Change, sealed: String?) -> HTML {
        if let sealed {
            element("details") {
                element("summary") { change == .retry ? "Try again now…" : "Disconnect…" }
                element("form", ["action": "users", "method": "post"]) {
                    input(["type": "hidden", "name": "change", "value": sealed])
                    element("p") {
                        change == .retry
                            ? "Makes the grant due now, except where an early refresh would do harm."
                            : "Ends the grant here and at Google. Only the user can connect again."
                    }
                    element("button") { change == .retry ? "Yes, try again" : "Yes, disconnect this user" }
                }
            }
        }
    }

    private func filterForm(_ filter: GrantFilter, next: String?) -> HTML {
        element("form", ["action": "grants", "method": "get", "class": "filter"]) {
            element("label") {
                "State "
                element("select", ["name": "state"]) {
                    element("option", ["value": ""]) { "any" }
                    for state in GrantState.allCases {
                        element("option", state == filter.state ? ["selected": ""] : [:]) { state.rawValue }
                    }
                }
            }
            filterField("Reason", name: "reason", value: filter.reason?.rawValue)
            filterField("Client id", name: "client", value: filter.clientID)
            filterField("Label", name: "label", value: filter.label?.text)
            element("label") {
                input(
                    filter.isExpired
                        ? ["type": "checkbox", "name": "expired", "value": "true", "checked": ""]
                        : ["type": "checkbox", "name": "expired", "value": "true"]
                )
                " Without a valid token"
            }
            element("button") { "Show" }
            if let next { element("button", ["name": "after", "value": next]) { "Next page" } }
        }
    }

    private func filterField(_ title: String, name: String, value: String?) -> HTML {
        element("label") {
            "\(title) "
            input(["name": name, "type": "text", "value": value ?? "", "autocomplete": "off", "spellcheck": "false"])
        }
    }

    @HTMLBuilder private func list(_ grants: [Grant], caption: String) -> HTML {
        if grants.isEmpty {
            element("p") { "No grant was found. If there is a next page, the search goes on there." }
        } else {
            let hasConnections = grants.contains { !$0.connection.isDefault }
            let connection: [Column] = hasConnections ? ["Connection"] : []
            table(
                caption,
                columns: ["User"] + connection + ["State", "Reason", "Since", "Due"],
                rows: grants.map { row(of: $0, showsConnection: hasConnections) }
            )
        }
    }

    private func row(of grant: Grant, showsConnection: Bool) -> [HTML] {
        var cells = [link(to: grant.id, showing: element("bdi") { grant.userID.shortened(to: Self.nameLimit) })]
        if showsConnection { cells.append(code(grant.connection.description)) }
        cells += [
            label(grant.state.rawValue, meaning: Self.meaning(of: grant.state)),
            grant.reason == .none ? HTML("none") : link(reason: grant.reason),
            time(grant.since), time(grant.dueAt, otherwise: "none"),
        ]
        return cells
    }

    private func caption(of grants: [Grant], filter: GrantFilter?, count: Int?) -> String {
        guard filter != nil else {
            let users = Set(grants.map(\.userID)).count
            return users > 1
                ? "\(grants.count.grouped("grant")) of \(users.grouped) users who have this e-mail address."
                : "\(grants.count.grouped("connection")) of the user."
        }
        if let count {
            let shown = grants.count < count ? ", \(grants.count.grouped) of them here" : ""
            return "\(count.grouped("grant"))\(shown), the longest in their state first."
        }
        return "In the order of their ids: too many to sort."
    }

    /// A link to the user of a grant: its address has no id of the user, because proxies log addresses.
    func link(to grant: GrantID, showing content: HTML) -> HTML {
        element("a", ["class": "code", "href": "users?grant=\(grant)"]) { content }
    }

    func link(reason: GrantReason) -> HTML {
        element("a", ["class": "code", "href": "grants?reason=\(reason)"]) { reason.rawValue }
    }

    func link(state: GrantState) -> HTML {
        element("a", ["class": "code", "href": "grants?state=\(state.rawValue)"]) { state.rawValue }
    }

    private static func meaning(of state: GrantState) -> Meaning {
        switch state {
        case .active: .good
        case .retrying: .neutral
        case .suspended, .reauthRequired, .disconnected: .bad
        }
    }

    private func userName(_ user: String) -> HTML {
        element("bdi", ["class": "code"]) { user.shortened(to: Self.userLimit) }
    }

    private func facts(of grant: Grant) -> HTML {
        let wait = clients.first { $0.id == grant.clientID }?.wait(of: grant, at: at)
        let meaning = wait.map { "It \($0.shortened(to: Self.sentenceLimit))." } ?? grant.state.meaning
        return element("dl") {
            fact("Connection") { code(grant.connection.description) }
            if !grant.labels.isEmpty {
                fact("Labels") {
                    for pair in grant.labels.sorted {
                        userName("\(pair.name)=\(pair.value)")
                        " "
                    }
                }
            }
            fact("State") {
                label(grant.state.rawValue, meaning: wait == nil ? Self.meaning(of: grant.state) : .neutral)
                " \(meaning) Since "
                time(grant.since)
            }
            if wait == nil || grant.reason != .none {
                fact("Reason") { grant.reason == .none ? HTML("none") : link(reason: grant.reason) }
            }
            fact("Due") { time(grant.dueAt, otherwise: "nothing is planned") }
            fact("Last success") { time(grant.lastSuccessAt, otherwise: "none") }
            fact("Last attempt") { time(grant.lastAttemptAt, otherwise: "none") }
            if grant.failures > 0 {
                fact("Failures") {
                    "\(grant.failures.grouped) in a row"
                    if let since = grant.failingSince {
                        ", since "
                        time(since)
                    }
                }
            }
            fact("Access token") {
                if let token = grant.accessToken {
                    if token.expiresAt > at {
                        "stored, valid until "
                    } else {
                        "stored, "
                        label("expired", meaning: .bad)
                        " "
                    }
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
        let all = history.count.grouped("event")
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
