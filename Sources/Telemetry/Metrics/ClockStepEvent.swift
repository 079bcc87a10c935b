package import Base

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
