/// An instant of the boot clock: comparable only with instants of the same boot.
package struct BootInstant: Hashable, Comparable, Sendable, Codable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds.clamped(to: Timestamp.range)
    }

    package static func < (left: BootInstant, right: BootInstant) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (instant: BootInstant, span: Duration) -> BootInstant {
        BootInstant(milliseconds: instant.milliseconds + span.wholeMilliseconds)
    }

    package static func - (instant: BootInstant, span: Duration) -> BootInstant {
        BootInstant(milliseconds: instant.milliseconds - span.wholeMilliseconds)
    }

    package static func - (left: BootInstant, right: BootInstant) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }
}
