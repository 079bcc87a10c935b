import Clocks
import GoogleOAuth
import Observability
import RefreshEngine
import Store
import Testing

@Suite("A wave of invalid_grant")
struct WaveTests {
    @Test(
        "is more than a fifth of the last 200 answers, and at least 20",
        arguments: [
            (0, 19, false), (0, 20, true), (79, 20, true), (80, 20, false), (159, 40, true), (160, 40, false),
            (159, 41, true), (1000, 41, true), (1000, 40, false),
        ]
    )
    func threshold(valid: Int, invalid: Int, isWave: Bool) {
        var bench = Bench()
        bench.remember(valid: valid, invalid: invalid)
        #expect(bench.health.window.isWave == isWave)
        #expect(bench.health.window.entries.count == min(200, valid + invalid))
    }

    @Test("passes out of the window with the answers that follow")
    func ends() {
        var bench = Bench()
        bench.remember(valid: 0, invalid: 200)
        bench.remember(valid: 159, invalid: 0)
        #expect(bench.health.window.isWave)
        bench.remember(valid: 1, invalid: 0)
        #expect(!bench.health.window.isWave)
    }

    @Test("is made by proven grants alone: an import of dead tokens is none")
    func unprovenDoNotCount() throws {
        var bench = Bench()
        for number in 0..<200 {
            var grant = try Sample.grant(Int64(number), isProven: false)
            let ruling = bench.refuse(.invalidGrant, on: &grant)
            #expect(ruling.outcome == .disconnected)
        }
        #expect(bench.health.window.entries.isEmpty)
    }

    @Test("counts every answer of a proven grant that says whether its token lives")
    func whatCounts() throws {
        var bench = Bench()
        let counted: [RefreshVerdict] = [
            .invalidGrant, .signInRequired(code: "invalid_rapt"), .blocked(code: "policy_enforced"),
        ]
        let silent: [RefreshVerdict] = [
            .clientFault(code: "invalid_client"), .clientOrForeignToken(code: "invalid_request"),
            .throttled(code: "http_429"), .endpointFault(code: "http_503"), .noAnswer(code: "timeout"), .notJSON,
            .unknown(code: "new"),
        ]
        for verdict in counted + silent {
            var grant = try Sample.grant()
            _ = bench.refuse(verdict, on: &grant)
        }
        var grant = try Sample.grant()
        _ = bench.decide(try Sample.granted(), on: &grant)
        #expect(bench.health.window.entries.map(\.saysInvalid) == [true, false, false, false])
    }

    @Test("The answer that makes it calls back those that came before, and is held itself")
    func recall() throws {
        var bench = Bench()
        for number in 1...19 {
            var grant = try Sample.grant(Int64(number))
            let ruling = bench.refuse(.invalidGrant, on: &grant)
            #expect(ruling.outcome == .disconnected && !ruling.recallsWave)
        }
        var twentieth = try Sample.grant(20)
        let ruling = bench.refuse(.invalidGrant, on: &twentieth)
        #expect(ruling.outcome == .held && ruling.recallsWave)
        #expect(bench.health.window.invalidGrants.map(\.rawValue) == Array(1...20))
        #expect(twentieth.state == .retrying && twentieth.reason == .invalidGrantUnconfirmed)
        #expect(twentieth.dueAt == start + .seconds(300))
        #expect(twentieth.generation == 3, "its answer may still turn out good")

        var next = try Sample.grant(21)
        let second = bench.refuse(.invalidGrant, on: &next)
        #expect(second.outcome == .held && !second.recallsWave, "called back once")
    }

    @Test("A second invalid_grant, five minutes later, is believed, wave or not", arguments: [true, false])
    func secondOpinion(isOver: Bool) throws {
        var bench = Bench()
        bench.remember(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        #expect(bench.refuse(.invalidGrant, on: &grant).outcome == .held)
        if isOver { bench.remember(valid: 200, invalid: 0) }
        bench.pass(.seconds(300))
        let ruling = bench.refuse(.invalidGrant, on: &grant)
        #expect(ruling.outcome == .disconnected)
        #expect(grant.state == .disconnected && grant.reason == .invalidGrant && grant.generation == 4)
        #expect(ruling.events.count == 1)
    }

    @Test("Whoever asks before the second opinion is due gets the first one again")
    func askedEarly() throws {
        var bench = Bench()
        bench.remember(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = bench.refuse(.invalidGrant, on: &grant)
        bench.remember(valid: 200, invalid: 0)
        for _ in 0..<29 {
            bench.pass(.seconds(10))
            let ruling = bench.refuse(.invalidGrant, on: &grant)
            #expect(ruling.outcome == .held && ruling.events.isEmpty)
            #expect(grant.state == .retrying && grant.dueAt == start + .seconds(300))
        }
        bench.pass(.seconds(10))
        #expect(bench.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }

    @Test("A good second opinion, early or not, makes the grant active", arguments: [10, 300])
    func goodSecondOpinion(seconds: Int) throws {
        var bench = Bench()
        bench.remember(valid: 0, invalid: 50)
        var grant = try Sample.grant()
        _ = bench.refuse(.invalidGrant, on: &grant)
        bench.pass(.seconds(seconds))
        #expect(bench.decide(try Sample.granted(at: bench.now), on: &grant).outcome == .refreshed)
        #expect(grant.state == .active && grant.reason == .none)
    }

    @Test("A grant that was called back is confirmed like the rest")
    func recalledGrant() throws {
        var bench = Bench()
        var grant = try Sample.grant()
        #expect(bench.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
        bench.pass(.seconds(60))
        let events = grant.recall(confirmAt: bench.now + .seconds(300), at: bench.now)
        #expect(events.count == 1)
        #expect(grant.state == .retrying && grant.reason == .invalidGrantUnconfirmed)
        bench.pass(.seconds(299))
        #expect(bench.refuse(.invalidGrant, on: &grant).outcome == .held)
        bench.pass(.seconds(1))
        #expect(bench.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }

    @Test("A suspended grant is held without ever showing as connected")
    func suspendedInWave() throws {
        var bench = Bench()
        bench.remember(valid: 0, invalid: 50)
        var grant = try Sample.grant(state: .suspended, reason: GrantReason(rawValue: "policy_enforced"))
        let ruling = bench.refuse(.invalidGrant, on: &grant)
        #expect(ruling.outcome == .held && ruling.events.isEmpty)
        #expect(grant.state == .suspended && grant.dueAt == start + .seconds(300))
        bench.remember(valid: 200, invalid: 0)
        bench.pass(.seconds(300))
        #expect(bench.refuse(.invalidGrant, on: &grant).outcome == .disconnected)
    }
}
