import Base
import GoogleOAuth
import Telemetry
import Testing

@testable import Crypto
@testable import Scheduler
@testable import Storage

@Suite("A refused proof")
struct RefusedProofTests {
    private static let codes = ["invalid_dpop_proof", "use_dpop_nonce", "clock_wrong"]

    private func grant(_ number: Int64 = 1, isBound: Bool = true) throws -> Grant {
        var grant = try Sample.grant(number)
        if isBound { grant.refreshToken?.bindingKeyID = KeyID("0000000b") }
        return grant
    }

    @Test("never ends a grant, however often it comes", arguments: codes, [true, false])
    func never(code: String, isBound: Bool) throws {
        var fixture = RulesFixture()
        var grant = try grant(isBound: isBound)
        let token = grant.refreshToken
        var tries = 0
        while fixture.now - start < .seconds(7 * 86_400) {
            tries += 1
            let decision = fixture.refuse(.proofRefused(code: code), on: &grant)
            #expect(decision.outcome == .retrying)
            #expect(grant.state == .retrying && grant.reason.rawValue == code)
            #expect(grant.refreshToken == token)
            fixture.advance(by: try #require(grant.dueAt) - fixture.now)
        }
        #expect(tries < 2100, "it is tried about every five minutes")
        _ = fixture.decide(try Sample.granted(), on: &grant)
        #expect(grant.state == .active && grant.failures == 0)
    }

    @Test("says nothing about the client: the breaker stays as it is, and no refusal is counted", arguments: codes)
    func client(code: String) throws {
        var fixture = RulesFixture()
        for number in 1...100 {
            var grant = try grant(Int64(number))
            _ = fixture.refuse(.proofRefused(code: code), on: &grant)
        }
        #expect(fixture.health.breaker == ClientHealth(epoch: "boot").breaker)
        #expect(fixture.health.rate == RefusalRate())
        #expect(fixture.health.limits == ClientHealth(epoch: "boot").limits)
    }

    @Test("closes the breaker of an outage: the endpoint works", arguments: codes)
    func endOfOutage(code: String) throws {
        var fixture = RulesFixture()
        for number in 1...40 {
            var grant = try grant(Int64(number))
            _ = fixture.refuse(.endpointFault(code: "http_503"), on: &grant)
        }
        #expect(fixture.health.breaker != ClientHealth(epoch: "boot").breaker)
        fixture.advance(by: .seconds(600))
        #expect(fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20)) == true)
        var probed = try grant()
        _ = fixture.refuse(.proofRefused(code: code), on: &probed)
        #expect(fixture.health.breaker == ClientHealth(epoch: "boot").breaker)
    }

    @Test("raises an alarm that says what the endpoint and the clocks say")
    func alarm() throws {
        var grant = try grant()
        let claim = RefreshClaim(grant: grant.id, clientID: grant.clientID, number: 7, generation: grant.generation)
        grant.setLease(Lease(owner: "w", claim: 7, epoch: "boot", until: BootInstant(milliseconds: 2_000_000)))
        let text = "this machine's clock is 10 min behind the endpoint's: set it right; invalid_dpop_proof: x"
        let context = DecisionContext(
            result: RefreshResult(
                claim: claim,
                answer: .failed(.proofRefused(code: "invalid_dpop_proof"), retryAfter: nil),
                text: text
            ),
            grant: grant,
            health: ClientHealth(epoch: "boot"),
            now: start,
            instant: BootInstant(milliseconds: 1_000_000),
            jitter: 0.5
        )
        let alarm = try #require(RefreshRules(maxRate: 200).decide(context).alarm)
        #expect(alarm.kind == .proofRefused)
        #expect(alarm.text.contains(text))
        #expect(alarm.text.contains("no grant ends because of it"))
    }

    @Test("raises no alarm if a nonce is refused in one attempt")
    func firstRefusedNonce() throws {
        var fixture = RulesFixture()
        var grant = try grant()
        #expect(fixture.refuse(.proofRefused(code: "use_dpop_nonce"), on: &grant).alarm == nil)
    }

    @Test("raises an alarm if a nonce is refused in two attempts in a row, and it names the header, not the clock")
    func repeatedRefusedNonce() throws {
        var fixture = RulesFixture()
        var grant = try grant()
        _ = fixture.refuse(.proofRefused(code: "use_dpop_nonce"), on: &grant)
        let alarm = try #require(fixture.refuse(.proofRefused(code: "use_dpop_nonce"), on: &grant).alarm)
        #expect(alarm.kind == .proofRefused)
        #expect(alarm.text.contains("header DPoP-Nonce"))
        #expect(!alarm.text.contains("clock") && !alarm.text.contains("key ring"))
        #expect(alarm.text.contains("no grant ends because of it"))
    }

    @Test("raises no alarm if a nonce is refused for the first time after a failure of another kind")
    func firstRefusedNonceAfterOtherFailure() throws {
        var fixture = RulesFixture()
        var grant = try grant()
        _ = fixture.refuse(.noAnswer(code: "timeout"), on: &grant)
        #expect(grant.failures == 1)
        #expect(fixture.refuse(.proofRefused(code: "use_dpop_nonce"), on: &grant).alarm == nil)
        #expect(fixture.refuse(.proofRefused(code: "use_dpop_nonce"), on: &grant).alarm != nil)
    }

    @Test("that a wrong clock can have caused has a reason of the worker's own")
    func clock() throws {
        var fixture = RulesFixture()
        var grant = try grant()
        let decision = fixture.refuse(.proofRefused(code: ProofRefusal.clockCode), on: &grant)
        #expect(grant.reason == .clockWrong && grant.state == .retrying)
        #expect(decision.alarm?.text.contains("this machine's clock") == true)
    }

    @Test("raises another alarm if the worker has no key for the token", arguments: codes)
    func unboundToken(code: String) throws {
        var fixture = RulesFixture()
        var grant = try grant(isBound: false)
        let alarm = try #require(fixture.refuse(.proofRefused(code: code), on: &grant).alarm)
        #expect(alarm.text.contains("their app has bound them to a key of its own"))
    }
}
