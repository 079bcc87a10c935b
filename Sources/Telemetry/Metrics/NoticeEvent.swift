package import Base

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
