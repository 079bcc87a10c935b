import TestSupport

@testable import Base
@testable import RefreshWorker
@testable import Scheduler
@testable import Storage

/// Starts, stops and passes.
extension DocumentedNumber {
    static var operation: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/operate.md",
            "at most \(stopDeadline.seconds) s while Google owes answers",
            "A killed worker counts as live for \(WorkerReport.lifetime.spelled)",
            "A stop can take \((stopDeadline + RefreshEngine.maximumOverrun + Worker.timeToClose).spelled)",
            "`--run-once` reaches its \(PassLimits.maximumPass.spelled)",
            "could be written within \(RefreshEngine.timeToSpill.spelled)",
            "while the worker runs, at a reload and every \(WorkerHeartbeat.interval.spelled)",
            "goes on within \(WorkerHeartbeat.interval.spelled) after its ring is complete",
            """
            \((ResultSpillFile.sizeForResults + ResultSpillFile.sizeForCommits).inMebibytes) \
            (\(ResultSpillFile.sizeForResults.inMebibytes) for PostgreSQL)
            """
        )
        numbers.add("docs/guarantees.md", "cannot be written within \(RefreshEngine.timeToSpill.spelled)")
        numbers.add(
            "docs/settings.md",
            "A running worker reads it again every \(WorkerHeartbeat.interval.spelled)",
            "print a one-line JSON summary and exit: for cron. \(PassLimits.maximumPass.spelled.capitalizedFirst) at most."
        )
        return numbers
    }

    private static let stopDeadline: Duration = .seconds(
        Setting.named(.stopDeadline)?.shownDefault.flatMap { Int($0) } ?? 0
    )
}
