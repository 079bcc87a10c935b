package import JSON

/// The start of the worker.
package struct StartedEvent: MetricsEvent {
    package static let name = "started"

    package static let fields: [MetricsField] = [
        .always("version", .string, "the worker's version"),
        .always("mode", .string, "`daemon` or `run_once`"),
    ]

    package var version: String
    /// `daemon` or `run_once`.
    package var mode: String

    package init(version: String, mode: String) {
        self.version = version
        self.mode = mode
    }

    package func write(into line: inout JSONLine) {
        line.text("version", version, limit: TextLimit.name)
        line.text("mode", mode, limit: TextLimit.name)
    }
}

/// The worker takes no new work, and finishes or releases its current work.
package struct StoppingEvent: MetricsEvent {
    package static let name = "stopping"

    package static let fields: [MetricsField] = [
        .always("reason", .string, "what it stops for, as in `SIGTERM`"),
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

/// A step of the wall clock.
package struct ClockStepEvent: MetricsEvent {
    package static let name = "clock_step"

    package static let fields: [MetricsField] = [
        .always("step_ms", .integer, "how far the wall clock was set; below 0, it was set back")
    ]

    /// The size of the step; negative if the clock was set back.
    package var step: Duration

    package init(step: Duration) {
        self.step = step
    }

    package func write(into line: inout JSONLine) {
        line.milliseconds("step_ms", step)
    }
}
