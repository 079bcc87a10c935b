import Base
import Storage
import Telemetry

extension MetricsEvent {
    /// A grant's move from one state to another.
    static func state(_ change: GrantEvent) -> MetricsEvent {
        MetricsEvent("state") { line in
            line.text("grant", change.grant.description, "the grant")
            line.text("from", change.from?.rawValue ?? "", "the former state, as in `active`")
            line.text("to", change.to.rawValue, "the new state")
            line.text("reason", change.reason.codeOrEmpty, "the reason for the new state")
            line.number("generation", Int(change.generation), "the version of the refresh token stored now")
        }
    }

    /// A step of the wall clock.
    static func clockStep(_ step: Duration) -> MetricsEvent {
        MetricsEvent("clock_step") { $0.milliseconds("step_ms", step, "the step; below 0, the clock was set back") }
    }
}
