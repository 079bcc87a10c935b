import Base
import Scheduler
import Status
import Testing

@testable import Storage
@testable import Telemetry

@Suite("The size of the status page")
struct SizeTests {
    @Test("stays below 75 KB, whatever is stored and however much is wrong", arguments: [false, true])
    func largest(withUser: Bool) {
        var contents = Self.largestContents()
        if !withUser { contents.lookup = nil }
        let page = contents.html
        #expect(page.utf8.count < 75_000)
        #expect(page.utf8.count > 25_000, "the contents would not be the largest")
    }

    @Test("of a list stays below it too")
    func list() {
        let long = String(repeating: "mmmmmmmmm\"", count: 30)
        #expect(Example.list(long, count: 50).html.utf8.count < 75_000)
    }

    @Test("stays below 32 KB for a worker without trouble")
    func usual() {
        var contents = Example.quiet()
        contents.clients = [Example.client(Example.clientID, ceiling: 40)]
        contents.snapshot?.workers = [Example.worker("4711-0a1b2c3d")]
        #expect(contents.html.utf8.count < 32_000)
    }

    /// The longest values that a page can get: thousand clients in trouble, all alarms, a busy hour, a full history.
    private static func largestContents() -> StatusPage {
        let long = String(repeating: "mmmmmmmmm\"", count: 30)
        var contents = StatusPage(
            at: Example.now,
            worker: long,
            version: long,
            startedAt: Example.now - .seconds(90_061),
            phase: "draining"
        )
        contents.findings = Example.findings(client: long, text: long)
        let millions = Dictionary(uniqueKeysWithValues: GrantState.allCases.map { ($0, 10_000_000) })
        contents.snapshot = StatusSnapshot(at: Example.now)
        contents.snapshot?.grants = Example.statistics(
            millions,
            due: 10_000_000,
            oldest: Example.now - .seconds(90_061)
        )
        contents.activity = Example.activity(
            (0..<60).map { (.minute, $0, 100_000 + $0, 90_000 - $0, 100_000 + $0) }
                + (0..<24).map { (.hour, $0, 6_000_000 + $0, 5_000_000 - $0, 100_000 + $0) }
        )
        contents.services = Dictionary(
            uniqueKeysWithValues: (0..<100).map { ("\($0)-\(long)", LifetimeCounts.Vends()) }
        )
        let start = BootInstant(milliseconds: 0)
        let probing = Breaker.State.probing(reason: .clientFault(long), since: start, nextProbe: start, probes: 1)
        contents.clients = (0..<1000).map { number in
            var client = Example.client("\(number)-\(long)", probing, ceiling: 12_345.6)
            client.isSlowed = true
            client.pause = .seconds(90_061)
            client.lastSuccessAt = Example.now - .seconds(90_061)
            return client
        }
        contents.snapshot?.workers = (0..<100).map { Example.worker("\($0)-\(long)", keys: 20) }
        contents.changes = (0..<20).map { number in
            Example.change(
                0x0123_4567_89ab_cdef,
                at: Example.now - .seconds(90_061 + number),
                from: .disconnected,
                to: .reauthRequired,
                reason: GrantReason(rawValue: String(repeating: "r", count: 64))
            )
        }
        contents.snapshot?.notices = PendingNotices(count: 1000, oldest: Example.now - .seconds(90_061))
        let history = (0..<101).map { number in
            var event = Example.event(90_000 + number)
            event.reason = GrantReason(rawValue: String(repeating: "r", count: 64))
            return event
        }
        contents.lookup = .found(Example.grant(user: long, client: long), history: history)
        return contents
    }
}
