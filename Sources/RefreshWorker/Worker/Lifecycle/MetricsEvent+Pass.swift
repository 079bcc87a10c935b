import Scheduler
import Telemetry

extension MetricsEvent {
    /// The result of a pass: the last line on standard output.
    static func runOnce(_ pass: PassSummary, unstored: UnstoredResults, duration: Duration) -> MetricsEvent {
        MetricsEvent("run_once") { line in
            line.number("due", pass.due, "that were due: the sum of the next seven")
            line.number("refreshed", pass.refreshed, "with a new access token")
            line.number("retrying", pass.retrying, "left for a later pass, for a temporary reason")
            line.number("held", pass.held, "that wait for confirmation")
            line.number("suspended", pass.suspended, "that a policy or an administrator blocks")
            line.number("reauth_required", pass.reauthRequired, "whose user must sign in again")
            line.number("disconnected", pass.disconnected, "that Google said are dead")
            line.number("skipped", pass.skipped, "that another worker had claimed")
            line.number("spilled", unstored.spilled, "answers with tokens in the spill file, refused by the database")
            line.number("lost", unstored.lost, "answers with tokens that could not be kept anywhere")
            line.milliseconds("duration_ms", duration, "of the pass")
        }
    }
}
