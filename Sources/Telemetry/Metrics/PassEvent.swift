package import Base

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
