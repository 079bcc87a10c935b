package import Base

/// A grant's move from one state to another.
package struct StateEvent: MetricsEvent {
    package static let name = "state"

    package static let fields: [MetricsField] = [
        .always("grant", .string, "the grant's id, 16 hexadecimal digits"),
        .always("from", .string, "the state that it left, as in `active` or `retrying`"),
        .always("to", .string, "the state that it entered, as in `disconnected`"),
        .always("reason", .string, "the code of the reason; empty where there is none"),
        .always("generation", .integer, "the version of the stored refresh token after the move"),
    ]

    /// The grant's id, 16 hexadecimal digits.
    package var grant: String
    package var from: String
    package var to: String
    /// The code of the reason, or an empty text.
    package var reason: String
    /// The version of the stored refresh token after the change.
    package var generation: Int64

    package init(grant: String, from: String, to: String, reason: String, generation: Int64) {
        self.grant = grant
        self.from = from
        self.to = to
        self.reason = reason
        self.generation = generation
    }

    package func write(into line: inout JSONLine) {
        line.text("grant", grant, limit: TextLimit.name)
        line.text("from", from, limit: TextLimit.name)
        line.text("to", to, limit: TextLimit.name)
        line.text("reason", reason, limit: TextLimit.name)
        line.field("generation", generation)
    }
}

/// One try to deliver a notice to the backend.
package struct NoticeEvent: MetricsEvent {
    package static let name = "notice"

    package static let fields: [MetricsField] = [
        .always("notice", .string, "the notice's id, which its receiver gets too"),
        .always("type", .string, "the notice's type, as in `grant.disconnected` or `user.deleted`"),
        .always("outcome", .string, "`accepted`, `postponed`, or `given_up` after a day of trying"),
        .always("attempt", .integer, "the number of the try, from 1 on"),
        .sometimes("grant", .string, "the grant's id, 16 hexadecimal digits; only if the notice is about a grant"),
        .sometimes("status", .integer, "the receiver's HTTP status; only if it answered"),
    ]

    package var notice: String
    package var type: String
    package var grant: String?
    package var outcome: String
    package var attempt: Int
    package var status: Int?

    package init(notice: String, type: String, grant: String?, outcome: String, attempt: Int, status: Int?) {
        self.notice = notice
        self.type = type
        self.grant = grant
        self.outcome = outcome
        self.attempt = attempt
        self.status = status
    }

    package func write(into line: inout JSONLine) {
        line.text("notice", notice, limit: TextLimit.name)
        line.text("type", type, limit: TextLimit.name)
        if let grant { line.text("grant", grant, limit: TextLimit.name) }
        line.text("outcome", outcome, limit: TextLimit.name)
        line.field("attempt", attempt)
        if let status { line.field("status", status) }
    }
}

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
