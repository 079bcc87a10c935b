import TestSupport

@testable import Base
@testable import RefreshWorker
@testable import Scheduler
@testable import Storage

/// Workers on PostgreSQL.
extension DocumentedNumber {
    static var postgres: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/postgres.md",
            "a worker has at most \(EngineConfiguration.defaultMaximumInFlight) refreshes in flight",
            "First raise `--max-rate` (\(Int(EngineConfiguration(workerName: "1-a").maxRate)) a second)",
            "\(PostgresConnection.oldestServer / 10_000) or later, a primary",
            "up to \(ServerFacts.maximumWorkerConnections.asWord) per worker",
            "A name has 1 to \(SchemaName.maximumLength) lower-case letters, digits and `_`",
            "a `default_pool_size` of \(ServerFacts.maximumWorkerConnections.asWord) for each worker",
            "a short one to each of them every \(Connector.surveyInterval.spelled)",
            "leaves them alone for its first \(Lease.span.spelled)",
            "the others wait \(CallDeadline.idleLimit.spelled) for it",
            "For \(Lease.span.spelled) afterwards no worker takes over another's grants",
            "Once a scan takes \(DueMark.slowScan.wholeMilliseconds) ms",
            "at most every \(DueMark.maximumPause.minutes == 1 ? "minute" : DueMark.maximumPause.spelled)",
            "gives its first scan up after \(DueMark.limit.spelled)",
            "After \(OldestTransaction.tolerableAge.spelled) the concern",
            "`database_rows_lost`](runbook.md#database_rows_lost) (within \(Worker.tallyInterval.spelled))",
            "because one commit stores up to a \(CommitQueue.batchSize.asWord)",
            "it also asks all of them every \(Connector.surveyInterval.spelled)",
            "What it stores in these \(Connector.surveyInterval.spelled) is lost"
        )
        numbers.add(
            "docs/scaling.md",
            "| in flight at Google, at 200 ms | \(EngineConfiguration.defaultMaximumInFlight), so",
            "| connections | \(ServerFacts.maximumWorkerConnections) |",
            "The worker's default of \(Int(EngineConfiguration(workerName: "1-a").maxRate))/s"
        )
        numbers.add(
            "docs/runbook.md",
            """
            for more than \(OldestTransaction.tolerableAge.spelled), or a million transactions
            """,
            "the first \(CopySuspicion.maximumGrants.asWord) grants that a worker tried since its start",
            "the worker tries one in \(CopySuspicion.retryInterval.spelled)",
            "each start asks for \(CopySuspicion.maximumGrants.asWord) more grants"
        )
        numbers.add("docs/guarantees.md", "stop after \(CopySuspicion.maximumGrants.asWord) grants")
        numbers.add("docs/status.md", "Google refused the first \(CopySuspicion.maximumGrants.asWord) grants")
        return numbers
    }
}
