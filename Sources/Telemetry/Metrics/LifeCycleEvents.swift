package import Base

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
        .always("step_ms", .integer, "the size of the step; below 0, the clock was set back")
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

/// The result of a pass, which tries each due grant once: the last line on standard output.
package struct PassEvent: MetricsEvent {
    package static let name = "run_once"

    package static let fields: [MetricsField] = [
        .always("due", .integer, "grants that were due; the next seven sum to it"),
        .always("refreshed", .integer, "grants with a new access token"),
        .always("retrying", .integer, "grants left for a later pass, for a reason that may pass"),
        .always("held", .integer, "grants that wait for confirmation"),
        .always("suspended", .integer, "grants that a policy or an administrator blocks"),
        .always("reauth_required", .integer, "grants whose user must sign in again"),
        .always("disconnected", .integer, "grants that Google said are dead"),
        .always("skipped", .integer, "grants that another worker had claimed"),
        .always("spilled", .integer, "answers with tokens that the database did not take, kept in the spill file"),
        .always("lost", .integer, "answers with tokens that could not be kept anywhere"),
        .always("duration_ms", .integer, "the duration of the pass"),
    ]

    package var due: Int
    package var refreshed: Int
    package var retrying: Int
    package var held: Int
    package var suspended: Int
    package var reauthRequired: Int
    package var disconnected: Int
    package var skipped: Int
    package var spilled: Int
    package var lost: Int
    package var duration: Duration

    package init(
        due: Int,
        refreshed: Int,
        retrying: Int,
        held: Int,
        suspended: Int,
        reauthRequired: Int,
        disconnected: Int,
        skipped: Int,
        spilled: Int = 0,
        lost: Int = 0,
        duration: Duration
    ) {
        self.due = due
        self.refreshed = refreshed
        self.retrying = retrying
        self.held = held
        self.suspended = suspended
        self.reauthRequired = reauthRequired
        self.disconnected = disconnected
        self.skipped = skipped
        self.spilled = spilled
        self.lost = lost
        self.duration = duration
    }

    package func write(into line: inout JSONLine) {
        line.field("due", due)
        line.field("refreshed", refreshed)
        line.field("retrying", retrying)
        line.field("held", held)
        line.field("suspended", suspended)
        line.field("reauth_required", reauthRequired)
        line.field("disconnected", disconnected)
        line.field("skipped", skipped)
        line.field("spilled", spilled)
        line.field("lost", lost)
        line.milliseconds("duration_ms", duration)
    }

    /// Writes the event first and its counts directly after it, because scripts rely on this form.
    package func line(at instant: Timestamp, worker: String) -> JSONLine {
        var line = JSONLine()
        line.field("event", Self.name)
        write(into: &line)
        line.field("time", instant.iso8601)
        line.text("worker", worker, limit: TextLimit.name)
        return line
    }
}
