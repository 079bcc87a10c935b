package import Base

/// One request of a service for an access token, whatever its outcome: the audit.
package struct VendEvent: MetricsEvent {
    package static let name = "vend"

    package static let fields: [MetricsField] = [
        .always("service", .string, "the name of the service that asked, as in the services file"),
        .always(
            "outcome",
            .string,
            """
            `served` (the stored token), `refreshed` (after a refresh that the service waited for), `warning` (the \
            stored token, while refreshes of the grant fail), else the code of the error, as the routes `/v1/grants/…` \
            answer it
            """
        ),
        .always("scopes", .string, "the scopes that were asked for, separated by spaces; empty where none was named"),
        .always("forced", .boolean, "`true` if the service asked for another token than the one it had"),
        .sometimes(
            "grant",
            .string,
            "the grant's id, 16 hexadecimal digits; only if the request came as far as a grant"
        ),
    ]

    /// The longest list of scopes, in bytes, that is shown completely; requests with longer lists are refused.
    package static let longestScopes = 1024

    package var service: String
    /// The outcome, as a code.
    package var outcome: String
    /// The scopes asked for, separated by spaces.
    package var scopes: String
    /// `true` if the service requested a refresh.
    package var forced: Bool
    /// The grant's id, 16 hexadecimal digits, if a grant was found.
    package var grant: String?

    package init(service: String, outcome: String, scopes: String, forced: Bool, grant: String?) {
        self.service = service
        self.outcome = outcome
        self.scopes = scopes
        self.forced = forced
        self.grant = grant
    }

    package func write(into line: inout JSONLine) {
        line.text("service", service, limit: TextLimit.name)
        line.text("outcome", outcome, limit: TextLimit.name)
        line.text("scopes", scopes, limit: Self.longestScopes)
        line.field("forced", forced)
        if let grant { line.text("grant", grant, limit: TextLimit.name) }
    }
}

/// One user that an operator looked up on the status page, whatever the outcome: the audit.
package struct LookupEvent: MetricsEvent {
    package static let name = "lookup"

    package static let fields: [MetricsField] = [
        .always("service", .string, "the name of the operator's service, as in the services file"),
        .always(
            "outcome",
            .string,
            """
            `found`, `not_found` (the user has no grant), `forbidden`, `invalid_request`, `store_unavailable` or \
            `audit_unavailable`
            """
        ),
        .sometimes("grant", .string, "the grant's id, 16 hexadecimal digits; only if the user was found"),
    ]

    package var service: String
    /// The outcome, as a code.
    package var outcome: String
    /// The grant's id, 16 hexadecimal digits, if a grant was found.
    package var grant: String?

    package init(service: String, outcome: String, grant: String?) {
        self.service = service
        self.outcome = outcome
        self.grant = grant
    }

    package func write(into line: inout JSONLine) {
        line.text("service", service, limit: TextLimit.name)
        line.text("outcome", outcome, limit: TextLimit.name)
        if let grant { line.text("grant", grant, limit: TextLimit.name) }
    }
}
