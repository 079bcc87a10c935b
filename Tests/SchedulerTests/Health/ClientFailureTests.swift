import Base
import GoogleOAuth
import Storage
import Testing

@testable import Scheduler

@Suite("What the endpoint answers a client instead of a token")
struct ClientFailureTests {
    @Test("is one entry for each kind, that of the latest answer first, three at most")
    func kinds() {
        var failures: [ClientFailure] = []
        for second in 0..<20 {
            failures.record("http_503", status: 503, at: start + .seconds(second))
            if second % 5 == 0 { failures.record("timeout", status: nil, at: start + .seconds(second)) }
        }
        #expect(failures.map(\.code) == ["http_503", "timeout"])
        #expect(failures.map(\.count) == [20, 4])
        #expect(failures.map(\.since) == [start, start])
        #expect(failures.map(\.lastAt) == [start + .seconds(19), start + .seconds(15)])
        failures.record("server_error", status: 500, at: start + .seconds(30))
        failures.record("server_error", status: 503, at: start + .seconds(31))
        #expect(failures.map(\.status) == [503, 500, 503])
        #expect(failures.map(\.code) == ["server_error", "server_error", "http_503"])
    }

    @Test("begins a new series after ten minutes without it, and not because other answers came")
    func series() {
        var failures: [ClientFailure] = []
        failures.record("invalid_grant", status: 400, at: start)
        failures.record("invalid_grant", status: 400, at: start + .seconds(600))
        #expect(failures.first?.count == 2 && failures.first?.since == start)
        failures.record("invalid_grant", status: 400, at: start + .milliseconds(1_200_001))
        #expect(failures.first?.count == 1 && failures.first?.since == start + .milliseconds(1_200_001))
        // The clock is set back.
        failures.record("invalid_grant", status: 400, at: start)
        #expect(failures.map(\.count) == [2] && failures.first?.since == start)
    }

    @Test(
        "is recorded for every answer without a token, and only for answers",
        arguments: [
            (.invalidGrant, "invalid_grant"), (.signInRequired(code: "invalid_rapt"), "invalid_rapt"),
            (.blocked(code: "org_internal"), "org_internal"), (.clientFault(code: "invalid_client"), "invalid_client"),
            (.clientOrForeignToken(code: "invalid_request"), "invalid_request"),
            (.appNotAuthentic, "app_not_authentic"),
            (.throttled(code: "http_429"), "http_429"), (.endpointFault(code: "http_503"), "http_503"),
            (.unknown(code: "Not A Code"), "unknown"), (.noAnswer(code: "timeout"), "timeout"),
            (.notSent(code: "withheld"), nil),
            (.givenUp(code: "stopping"), nil),
        ] as [(RefreshFailure, String?)]
    )
    func verdicts(verdict: RefreshFailure, code: String?) throws {
        var fixture = RulesFixture()
        var grant = try Sample.grant()
        _ = fixture.refuse(verdict, on: &grant)
        #expect(fixture.health.failures.map(\.code) == [code].compactMap(\.self))
        #expect(fixture.health.failures.allSatisfy { $0.since == fixture.now && $0.count == 1 })
        let before = fixture.health.failures
        _ = fixture.decide(try Sample.granted(), on: &grant)
        #expect(fixture.health.failures == before, "a success shows nothing about the others")
    }
}
