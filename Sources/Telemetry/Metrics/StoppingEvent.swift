package import Base

/// The worker takes no new work, and finishes or releases its current work.
package struct StoppingEvent: MetricsEvent {
    package static let name = "stopping"

    package static let fields: [MetricsField] = [
        .always("reason", .string, "the reason for the stop, as in `SIGTERM`"),
        .always("in_flight", .integer, "refreshes in flight: begun, and their result is not stored yet"),
    ]

    /// The reason for the stop.
    package var reason: String
    /// The number of refreshes in flight.
    package var inFlight: Int

    package init(reason: String, inFlight: Int) {
        self.reason = reason
        self.inFlight = inFlight
    }

    package func write(into line: inout JSONLine) {
        line.text("reason", reason, limit: TextLimit.name)
        line.field("in_flight", inFlight)
    }
}
