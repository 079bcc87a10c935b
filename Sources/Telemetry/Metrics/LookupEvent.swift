package import Base

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
