import TestSupport

@testable import Base
@testable import RefreshWorker
@testable import Routes
@testable import Scheduler
@testable import Status
@testable import Storage
@testable import Telemetry

/// What counts as a concern or an alarm, and how old the shown state can be.
extension DocumentedNumber {
    static let status = concerns + alarms + shown

    private typealias Snapshot = StatusSnapshot

    private static var concerns: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/runbook.md",
            "More than \(many.part) of the connected grants, and at least \(many.count), wait for another try",
            "were due for \(Snapshot.twoPeriods.spelled) without a success",
            "has waited for more than \(Snapshot.tolerableLateness.spelled), although a worker runs",
            "After \(Snapshot.harmlessLateness.spelled) tokens expire",
            "No worker has reported for \(WorkerReport.lifetime.spelled)",
            "began in the last \(Snapshot.tolerablePassInterval.spelled)",
            "where a pass ran in the last \(lastDay(Snapshot.passesRemembered))",
            "It is read again within \(WorkerHeartbeat.interval.spelled)",
            "Refresh tokens end within \(GrantStatistics.warningBeforeEnd.spelled)",
            "if more than \(ending.part), and at least \(ending.count), end within a day",
            "were not refreshed for \((GrantStatistics.idleBeforeWarning.days / 30).asWord) months",
            "has accepted no notice for more than \(Snapshot.tolerableNoticeAge.spelled)",
            "No security event has come for \(Snapshot.tolerableSilence.spelled)",
            "Less than \(Snapshot.nearlyFull.inMebibytes) are free",
            "no copy of the last \(Snapshot.tolerableBackupAge.spelled)",
            "FAULT below \(Doctor.minimumSpace.inMebibytes), WARN below \(Snapshot.nearlyFull.inMebibytes)",
            "it tries one every \(EndpointReach.probeInterval.spelled)",
            "wait \(RefreshRules.maximumDoubtAboutProvenGrant.spelled): then the worker decides",
            "after \(BackOff.slowRetriesAfter.spelled) once \(BackOff.slowRetryInterval.spelled)",
            "refresh tokens \(ConsentEnds.testingLife.spelled) after the consent",
            "lost in a month, and at least \(ConsentEnds.minimumLosses.asWord), lasted that long"
        )
        numbers.add(
            "docs/status.md",
            "| a service that asks would get a new one | \(Snapshot.tolerableLateness.spelled) |",
            """
            more than \(many.part) of the connected grants, and at least \(many.count), have expired | \
            \(Snapshot.tolerableLatenessOfMany.spelled) |
            """,
            "as between two passes of `--run-once`: services get no tokens | \(Snapshot.tolerablePassInterval.spelled) |",
            "above \(ExpiredGrants.Sample.limit) an estimate",
            "refresh token expires in \(GrantStatistics.warningBeforeEnd.spelled)",
            "without a refresh for \((GrantStatistics.idleBeforeWarning.days / 30).asWord) months",
            "reported within the last \(WorkerReport.lifetime.spelled)",
            "in the last \(lastDay(ClientFailure.shownFor)) instead of a token: \(ClientFailure.maximumKinds.asWord) kinds",
            "Its series ends after \(ClientFailure.maximumPause.spelled) without"
        )
        return numbers
    }

    private static var alarms: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/status.md",
            "logs an alarm that lasts once \(EngineLog.alarmPause.spelled)",
            "at each heartbeat (\(WorkerHeartbeat.interval.spelled))",
            "the number of grants every \(Worker.tallyInterval.spelled)",
            "each one \(AlarmKind.databaseReplaced.maximumAge.spelled) after its cause was last seen",
            "or \(WorkerReport.lifetime.spelled) after its last report",
            "the codes of \(CodeExchangeState.enoughUsersOfForeignCodes.asWord) users",
            "a worker has no answer for \(EndpointReach.minimumSilence.spelled)",
            "no such refresh in \(AlarmKind.refreshLoop.maximumAge.spelled)",
            "no such try in \(AlarmKind.unreadableToken.maximumAge.spelled)",
            "\(CertificateMonitor.maximumWarning.spelled), or a quarter of the lifetime, are left",
            "consents of a client id end after \(ConsentEnds.testingLife.spelled)"
        )
        numbers.add(
            "docs/runbook.md",
            "the codes of \(CodeExchangeState.enoughUsersOfForeignCodes.asWord) users were of another client"
        )
        numbers.add(
            "docs/services.md",
            "every day from \(CertificateMonitor.maximumWarning.spelled) before the end, or from the last quarter"
        )
        return numbers
    }

    private static var shown: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/status.md",
            "A worker counts them every \(Worker.tallyInterval.spelled)",
            "at most \((LiveStatus.interval + DatabaseReadiness.timeout).spelled) old",
            "the page shows the last counts for \(LiveStatus.maximumAgeOfCounts.spelled)"
        )
        numbers.add(
            "docs/guarantees.md",
            "at most \((LiveStatus.interval + DatabaseReadiness.timeout).spelled) old",
            "a reading that takes more than \(DatabaseReadiness.timeout.spelled)",
            "after \(LiveStatus.maximumAge.spelled) without one the verdict is `unknown`",
            "a timer that stopped more than \(StatusSnapshot.tolerablePassInterval.spelled) ago",
            "a killed worker counts as alive for \(WorkerReport.lifetime.spelled)"
        )
        numbers.add("docs/watch.md", "After \(WorkerReport.lifetime.spelled) also if no worker runs")
        numbers.add("docs/kubernetes.md", "comes \(CertificateMonitor.maximumWarning.spelled) before the end")
        numbers.add(
            "docs/prometheus.md",
            "each of the \(WorkerMetrics.maximumClients) client ids with the most expired"
        )
        return numbers
    }

    private static let many = words(StatusSnapshot.tolerableShare)
    private static let ending = words(StatusSnapshot.tolerableEnding)

    private static func words(_ share: TolerableShare) -> (part: String, count: String) {
        let names = [5: "a fifth", 10: "a tenth"]
        return (names[Int((1 / share.share).rounded())] ?? "\(share.share)", share.count.asWord)
    }

    private static func lastDay(_ span: Duration) -> String { span.days == 1 ? "day" : span.spelled }
}
