import Clocks
import Scheduler
import Store
import Testing

@testable import RefreshEngine

@Suite("Permissions for callers and for one pass")
struct PermissionStateTests {
    private func caller(_ bench: inout StateBench) -> RefreshEngineState.CallerPermission {
        let end = bench.conditions.instant + .seconds(25)
        return bench.state.permitCaller(of: "client", until: end, under: bench.conditions)
    }

    private func pass(_ count: Int, _ bench: inout StateBench) -> RefreshEngineState.PassPermission {
        let end = bench.conditions.instant + .seconds(25)
        return bench.state.permitPass(count, of: "client", until: end, under: bench.conditions)
    }

    @Test("A caller waits for the pace, unless that takes longer than it waits")
    func callerPace() {
        var bench = StateBench(maxRate: 5)
        #expect(caller(&bench) == .send)
        #expect(caller(&bench) == .wait(.milliseconds(200)))
        let end = bench.conditions.instant + .milliseconds(200)
        #expect(bench.state.permitCaller(of: "client", until: end, under: bench.conditions) == .refuse(.throttled))
    }

    @Test("A caller is refused by an open breaker, and asks for the probe when it is due")
    func callerBreaker() {
        var bench = StateBench()
        bench.state.learn(bench.openBreaker(), of: "client")
        #expect(caller(&bench) == .refuse(.breakerOpen))
        bench.pass(.seconds(60))
        #expect(caller(&bench) == .askForProbe)
    }

    @Test("A caller is refused while the store fails, and by a stop")
    func callerTrouble() {
        var bench = StateBench()
        bench.conditions.isStoreFailing = true
        #expect(caller(&bench) == .refuse(.storeFailing))
        _ = bench.state.beginStop()
        #expect(caller(&bench) == .refuse(.stopping))
    }

    @Test("A pass may send what the pace and the in-flight limit allow, and waits for more")
    func passPace() throws {
        var bench = StateBench(mostInFlight: 8, maxRate: 50)
        #expect(pass(20, &bench) == .send(8))
        _ = try bench.send(1...7)
        #expect(pass(20, &bench) == .wait(.milliseconds(5)), "one place is less than a claim is worth")
    }

    @Test("A pass ends at its deadline, by an open breaker and by a stop")
    func passEnd() {
        var bench = StateBench()
        let instant = bench.conditions.instant
        #expect(bench.state.permitPass(1, of: "client", until: instant, under: bench.conditions) == .stop)
        bench.state.learn(bench.openBreaker(), of: "client")
        #expect(pass(1, &bench) == .stop)
        bench.pass(.seconds(60))
        #expect(pass(1, &bench) == .askForProbe)
        _ = bench.state.beginStop()
        #expect(pass(1, &bench) == .stop)
    }

    @Test("A pass waits while the store fails or a key is missing")
    func passTrouble() {
        var bench = StateBench()
        bench.conditions.isStoreFailing = true
        #expect(pass(1, &bench) == .wait(.seconds(1)))
        bench.conditions.isStoreFailing = false
        bench.conditions.isKeyRingComplete = false
        #expect(pass(1, &bench) == .wait(.milliseconds(50)))
    }
}
