package import Base

/// One event of a security event token that Google sent.
package struct SecurityEventEvent: MetricsEvent {
    package static let name = "security_event"

    package static let fields: [MetricsField] = [
        .always(
            "token",
            .string,
            "16 hexadecimal digits that identify the token; a token that is sent again has the same"
        ),
        .always(
            "kind",
            .string,
            "the kind of event, as in `tokens_revoked`; `other` for a kind that the worker does not know"
        ),
        .always(
            "outcome",
            .string,
            "`applied`; `unmatched` (it does not match anything stored); `ambiguous` (it may match several grants: "
                + "these are refreshed at once); `outdated` (it may be older than the stored tokens: the grant is "
                + "refreshed at once); `recorded` (there is nothing to do); `repeated` (the token was received before)"
        ),
        .always("grants", .integer, "the number of grants that were changed or made due"),
        .always("sessions", .integer, "the number of the app's sessions that ended"),
    ]

    package enum Outcome: String, Sendable {
        case applied
        case unmatched
        case ambiguous
        case outdated
        case recorded
        case repeated
    }

    /// A hash that identifies the token; the token's own id stays private to Google.
    package var token: String
    package var kind: String
    package var outcome: Outcome
    package var grants: Int
    package var sessions: Int

    package init(token: String, kind: String, outcome: Outcome, grants: Int = 0, sessions: Int = 0) {
        self.token = token
        self.kind = kind
        self.outcome = outcome
        self.grants = grants
        self.sessions = sessions
    }

    package func write(into line: inout JSONLine) {
        line.text("token", token, limit: TextLimit.name)
        line.text("kind", kind, limit: TextLimit.name)
        line.field("outcome", outcome.rawValue)
        line.field("grants", grants)
        line.field("sessions", sessions)
    }
}
