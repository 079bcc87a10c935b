package import Base

/// The worker's last line.
package struct StoppedEvent: MetricsEvent {
    package static let name = "stopped"

    package static let fields: [MetricsField] = [
        .always("uptime_ms", .integer, "milliseconds since it started")
    ]

    package var uptime: Duration

    package init(uptime: Duration) {
        self.uptime = uptime
    }

    package func write(into line: inout JSONLine) {
        line.milliseconds("uptime_ms", uptime)
    }
}
