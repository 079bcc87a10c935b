import TestSupport

@testable import Base
@testable import RefreshWorker
@testable import Scheduler
@testable import Telemetry

/// The metrics log.
extension DocumentedNumber {
    static var logs: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/metrics-log.md",
            """
            an `answer` at \(RefreshEvent.maximumAnswer) bytes, an alarm's sentence at \(MetricsLine.maximumSentence), scopes at \
            \(MetricsLine.maximumScopes), others at \(MetricsLine.maximumName)
            """,
            "If the queue of \(LineWriter.defaultCapacity.grouped) lines is full",
            "waits up to \(LineWriter.maximumFlush.spelled) for the reader",
            "at most once \(LineOutput.nameCheckInterval.spelled), and at once on `SIGHUP`",
            "written up to \(collectionDelay) ms later",
            "has waited for \(LineWriter.maximumWait.spelled) because the reader of a pipe has stalled"
        )
        numbers.add("docs/runbook.md", "has stalled for \(LineWriter.maximumWait.spelled)")
        numbers.add("docs/guarantees.md", "the last \(collectionDelay) ms before the disk is full")
        numbers.add(
            "docs/runbook.md",
            "A step of more than \(ClockMonitor.tolerance.spelled) makes a `clock_step` event"
        )
        return numbers
    }

    private static let collectionDelay = LineWriter.collectionDelay.wholeMilliseconds
}
