package import Base

/// A change of the breaker of one client id.
package struct BreakerEvent: MetricsEvent {
    package enum Change: String, Sendable {
        /// No more requests are sent.
        case opened
        /// One grant is tried, to check if the fault has passed.
        case probe
        /// Requests are sent again.
        case closed
    }

    package static let name = "breaker"

    package static let fields: [MetricsField] = [
        .always("client", .string, "the client id"),
        .always("change", .string, "`opened` (requests stop), `probe` (one grant is tried), `closed` (requests go on)"),
        .always("reason", .string, "the code of the reason; empty where there is none"),
    ]

    /// The client id.
    package var client: String
    package var change: Change
    /// The code of the reason, or an empty text.
    package var reason: String

    package init(client: String, change: Change, reason: String) {
        self.client = client
        self.change = change
        self.reason = reason
    }

    package func write(into line: inout JSONLine) {
        line.text("client", client, limit: TextLimit.name)
        line.field("change", change.rawValue)
        line.text("reason", reason, limit: TextLimit.name)
    }
}

/// A change of the pace of one client id.
package struct PacerEvent: MetricsEvent {
    package static let name = "pacer"

    package static let fields: [MetricsField] = [
        .always("client", .string, "the client id"),
        .always("ceiling", .number, "requests a second that are now allowed"),
        .always("paused_ms", .integer, "milliseconds during which no request is sent, from now; 0 for no pause"),
        .always("reason", .string, "the code of the reason; empty where there is none"),
    ]

    /// The client id.
    package var client: String
    /// Requests a second.
    package var ceiling: Double
    /// The time for which no request is sent, from now on.
    package var paused: Duration
    /// The code of the reason, or an empty text.
    package var reason: String

    package init(client: String, ceiling: Double, paused: Duration, reason: String) {
        self.client = client
        self.ceiling = ceiling
        self.paused = paused
        self.reason = reason
    }

    package func write(into line: inout JSONLine) {
        line.text("client", client, limit: TextLimit.name)
        line.field("ceiling", ceiling)
        line.milliseconds("paused_ms", paused)
        line.text("reason", reason, limit: TextLimit.name)
    }
}
