import Base
import Scheduler
import Storage
import Testing

@testable import Scheduler

@Suite("Permissions for callers and for one pass")
struct PermissionStateTests {
    private func caller(_ fixture: inout StateFixture) -> SendPermission {
        let end = fixture.conditions.instant + .seconds(25)
        return fixture.state.permitCaller(of: "client", until: end, under: fixture.conditions)
    }

    private func pass(_ count: Int, _ fixture: inout StateFixture) -> SendPermission {
        let end = fixture.conditions.instant + .seconds(25)
        return fixture.state.permitPass(count, of: "client", until: end, under: fixture.conditions)
    }

    @Test("A caller waits for the pace, unless that takes longer than it waits")
    func callerPace() {
        var fixture = StateFixture(maxRate: 5)
        #expect(caller(&fixture) == .send(1))
        #expect(caller(&fixture) == .wait(.milliseconds(200)))
        let end = fixture.conditions.instant + .milliseconds(200)
        #expect(fixture.state.permitCaller(of: "client", until: end, under: fixture.conditions) == .refuse(.throttled))
    }

    @Test("A caller is refused by an open breaker, and asks for the probe when it is due")
    func callerBreaker() {
        var fixture = StateFixture()
        fixture.state.updateHealth(fixture.openBreaker(), of: "client")
        #expect(caller(&fixture) == .refuse(.breakerOpen))
        fixture.pass(.seconds(60))
        #expect(caller(&fixture) == .askForProbe)
    }

    @Test("A caller is refused while the store fails, and by a stop")
    func callerDuringFailure() {
        var fixture = StateFixture()
        fixture.conditions.isCommitFailing = true
        #expect(caller(&fixture) == .refuse(.storeFailing))
        _ = fixture.state.beginStop()
        #expect(caller(&fixture) == .refuse(.stopping))
    }

    @Test("A pass may send what the pace and the in-flight limit allow, and waits for more")
    func passPace() throws {
        var fixture = StateFixture(maximumInFlight: 8, maxRate: 50)
        #expect(pass(20, &fixture) == .send(8))
        _ = try fixture.send(1...7)
        #expect(pass(20, &fixture) == .waitForSlot, "one place is less than a claim is worth")
    }

    @Test("A pass ends at its deadline, by an open breaker and by a stop")
    func passEnd() {
        var fixture = StateFixture()
        let instant = fixture.conditions.instant
        #expect(
            fixture.state.permitPass(1, of: "client", until: instant, under: fixture.conditions) == .refuse(.timeout)
        )
        fixture.state.updateHealth(fixture.openBreaker(), of: "client")
        #expect(pass(1, &fixture) == .refuse(.breakerOpen))
        fixture.pass(.seconds(60))
        #expect(pass(1, &fixture) == .askForProbe)
        _ = fixture.state.beginStop()
        #expect(pass(1, &fixture) == .refuse(.stopping))
    }

    @Test("A pass waits while the store fails or a key is missing")
    func passDuringFailure() {
        var fixture = StateFixture()
        fixture.conditions.isCommitFailing = true
        #expect(pass(1, &fixture) == .wait(.seconds(1)))
        fixture.conditions.isCommitFailing = false
        fixture.conditions.isKeyRingComplete = false
        #expect(pass(1, &fixture) == .wait(.milliseconds(50)))
    }
}
