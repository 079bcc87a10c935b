import Crypto
import Storage
import Testing

@testable import Base
@testable import Commands
@testable import Worker

@Suite("The facts that status --watch compares")
struct StatusFactsTests {
    private static let key = KeyID.named("00000001")

    private func report(at now: Timestamp = ManualTime().now, _ change: (inout StatusReport) -> Void = { _ in })
        -> StatusReport
    {
        var report = StatusReport(
            at: now,
            statistics: GrantStatistics(
                byState: [.active: 3],
                due: 0,
                oldestDueAt: nil,
                refreshTokensEnding: 0,
                idle: 0
            ),
            clients: [],
            workers: [WorkerReport(id: "w", keyIDs: [Self.key], sealingKeyID: Self.key)],
            keysInUse: [Self.key: 6],
            keyRing: KeyRingSummary(sealing: Self.key),
            database: StatusReport.Database(path: "/d", bytes: 4096, schema: 1)
        )
        change(&report)
        return report
    }

    @Test("are all new at first, and the same while only time passes")
    func first() {
        let now = ManualTime().now
        let facts = StatusFacts(report(at: now))
        #expect(facts.changes(since: nil).map(\.name) == ["grants", "workers", "verdict"])
        let later = StatusFacts(report(at: now + .seconds(60)) { $0.statistics.due = 1 })
        #expect(later.changes(since: facts).isEmpty)
    }

    @Test("are redrawn over the former report without erasing the screen first")
    func redrawn() {
        #expect(ShowStatus.redrawn("a\nb\n") == "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J")
    }

    @Test("give one line for each change")
    func changes() {
        let former = StatusFacts(report())
        let next = report {
            $0.statistics.byState = [.active: 2, .retrying: 1]
            $0.workers = []
        }
        let changes = StatusFacts(next).changes(since: former)
        let lines = ShowStatus.lines(of: changes, next, asJSON: false)
        #expect(
            lines == [
                "2027-01-15T08:00:00Z  grants: 2 active, 1 retrying", "2027-01-15T08:00:00Z  workers: none running",
                "2027-01-15T08:00:00Z  verdict: needs attention: no_worker",
            ]
        )
        #expect(ShowStatus.lines(of: changes, next, asJSON: true).count == 1)
        #expect(ShowStatus.lines(of: [], next, asJSON: true).isEmpty)
    }
}
