import Base
import Status
import Testing

@testable import Storage
@testable import Telemetry

@Suite("The size of the status page")
struct SizeTests {
    @Test("stays below 50 KB, whatever is stored and however much is wrong", arguments: [false, true])
    func largest(withUser: Bool) {
        var contents = Self.largestContents()
        if !withUser { contents.lookup = nil }
        let page = StatusPage(contents).html
        #expect(page.utf8.count < 50_000)
        #expect(page.utf8.count > 30_000, "the contents would not be the largest")
    }

    @Test("stays below 20 KB for a worker without trouble")
    func usual() {
        var contents = Example.quiet()
        contents.clients = [StatusPageContents.Client(id: Example.client, breaker: "closed", ceiling: 40)]
        contents.workers = [Example.worker("4711-0a1b2c3d")]
        #expect(StatusPage(contents).html.utf8.count < 20_000)
    }

    /// The longest values that a page can get: thousand clients in trouble, all alarms, a busy hour, a full history.
    private static func largestContents() -> StatusPageContents {
        let long = String(repeating: "mmmmmmmmm\"", count: 30)
        var contents = StatusPageContents(
            at: Example.now,
            worker: long,
            version: long,
            startedAt: Example.now - .seconds(90_061),
            phase: "draining"
        )
        contents.judgement = Example.judgement(client: long, text: long)
        let millions = Dictionary(uniqueKeysWithValues: GrantState.allCases.map { ($0, 10_000_000) })
        contents.grants = Example.statistics(millions, due: 10_000_000, oldest: Example.now - .seconds(90_061))
        contents.activity = (0..<60).map { minute in
            RecentActivity.Minute(
                refreshed: 100_000 + minute,
                failed: 90_000 - minute,
                longestLateness: .seconds(100 + minute)
            )
        }
        contents.clients = (0..<1000).map { number in
            StatusPageContents.Client(
                id: "\(number)-\(long)",
                breaker: "probing",
                breakerReason: long,
                ceiling: 12_345.6,
                isSlowed: true,
                pause: .seconds(90_061),
                lastSuccessAt: Example.now - .seconds(90_061)
            )
        }
        contents.workers = (0..<100).map { Example.worker("\($0)-\(long)", keys: 20) }
        contents.changes = (0..<20).map { number in
            RecentChanges.Change(
                at: Example.now - .seconds(90_061 + number),
                grant: "0123456789abcdef",
                from: "disconnected",
                to: "reauth_required",
                reason: String(repeating: "r", count: 64)
            )
        }
        contents.notices = PendingNotices(count: 1000, oldest: Example.now - .seconds(90_061))
        let history = (0..<101).map { number in
            var event = Example.event(90_000 + number)
            event.reason = GrantReason(rawValue: String(repeating: "r", count: 64))
            return event
        }
        contents.lookup = .found(Example.grant(user: long, client: long), history: history)
        return contents
    }
}
