extension CommandSpecification {
    /// The states that a grant may be in, as `grants list --state` takes them.
    static let grantStates = ["active", "retrying", "suspended", "reauth_required", "disconnected"]

    /// `grants list`.
    static let listGrants = CommandSpecification(
        words: ["grants", "list"],
        summary: "list the stored grants and their states",
        discussion: [
            """
            Lists every grant, or those that fit all of the options, with the reason of the state. Never prints a \
            token. On a terminal the columns fit its width; in a pipe or a file no text is cut.
            """
        ],
        options: [
            .json,
            OptionSpecification(
                name: "state",
                kind: .choice(grantStates, as: "STATE"),
                summary: "only grants in this state: " + grantStates.joined(separator: ", ")
            ),
            OptionSpecification(
                name: "reason",
                kind: .text(as: "REASON", AllowedText(lengthLimit: 64, signs: "_")),
                summary: "only grants whose state has this reason, such as client_mismatch"
            ),
            .client("only grants of this client id"),
            OptionSpecification(
                name: "expired",
                kind: .toggle,
                summary: "only connected grants without a valid access token"
            ),
            OptionSpecification(
                name: "unreadable",
                kind: .toggle,
                summary: "only grants with a token that the key ring does not open, because a key is lost"
            ),
            OptionSpecification(
                name: "sort",
                kind: .choice(GrantListOptions.Order.allCases.map(\.rawValue), as: "ORDER"),
                summary: """
                    due: the next due first; user: by the user's id; since: the longest in its state first. Default: \
                    the order of the database
                    """
            ),
            OptionSpecification(name: "limit", kind: .number(1...1_000_000), summary: "at most this many grants"),
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(line: "refresh-worker grants list", purpose: "a table of all grants"),
            Example(
                line: "refresh-worker grants list --expired --sort since --limit 20",
                purpose: "the grants that have been without a valid token in their state for longest"
            ),
            Example(
                line: "refresh-worker grants list --state disconnected --json | jq -r .user_id",
                purpose: "the users whose consent has ended"
            ),
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { arguments in
            .listGrants(
                GrantListOptions(
                    state: arguments.options["state"],
                    reason: arguments.options["reason"],
                    clientID: arguments.options["client"],
                    isExpired: arguments.has("expired"),
                    isUnreadable: arguments.has("unreadable"),
                    order: arguments.options["sort"].flatMap { GrantListOptions.Order(rawValue: $0) },
                    limit: arguments.options["limit"].flatMap { Int($0) },
                    isJSON: arguments.has("json")
                )
            )
        }
    )
}

extension OptionSpecification {
    /// `--json`, of commands that print records.
    static let json = OptionSpecification(
        name: "json",
        kind: .toggle,
        summary: "JSON, one object a line, instead of text; never a token"
    )

    /// `--json`, of commands that print one result.
    static let jsonObject = OptionSpecification(
        name: "json",
        kind: .toggle,
        summary: "one JSON object instead of text"
    )

    /// `--json`, of imports.
    static let jsonSummary = OptionSpecification(
        name: "json",
        kind: .toggle,
        summary: "the numbers at the end as a JSON object on standard output"
    )

    /// `--client ID`, which selects grants; `--client-id` is a setting.
    static func client(_ summary: String) -> OptionSpecification {
        OptionSpecification(name: "client", kind: .clientID, summary: summary)
    }
}

/// The arguments of `grants list`: each of the first five leaves out the grants that do not fit it.
package struct GrantListOptions: Equatable, Sendable {
    /// The order of the list; without one, the list is in the order of the grants' ids.
    package enum Order: String, CaseIterable, Sendable {
        case due
        case user
        case since
    }

    package var state: String?
    package var reason: String?
    package var clientID: String?
    /// `true` if only connected grants whose access token has expired are wanted.
    package var isExpired = false
    /// `true` if only grants with a token that the key ring does not open are wanted.
    package var isUnreadable = false
    package var order: Order?
    package var limit: Int?
    package var isJSON = false

    package init(
        state: String? = nil,
        reason: String? = nil,
        clientID: String? = nil,
        isExpired: Bool = false,
        isUnreadable: Bool = false,
        order: Order? = nil,
        limit: Int? = nil,
        isJSON: Bool = false
    ) {
        self.state = state
        self.reason = reason
        self.clientID = clientID
        self.isExpired = isExpired
        self.isUnreadable = isUnreadable
        self.order = order
        self.limit = limit
        self.isJSON = isJSON
    }
}
