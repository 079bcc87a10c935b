import Base
import GoogleOAuth
import Testing

@testable import Scheduler

@Suite("The way of one worker to the token endpoint")
struct EndpointReachTests {
    private static let lost: RefreshResult.Answer = .failed(.noAnswer(code: "timeout"), retryAfter: nil)
    private static let refused: RefreshResult.Answer = .failed(.invalidGrant, retryAfter: nil)

    private func at(_ seconds: Int) -> Timestamp { start + .seconds(seconds) }

    /// Records unanswered requests at these seconds.
    private func reach(unansweredAt seconds: [Int]) -> EndpointReach {
        var reach = EndpointReach()
        for second in seconds { reach.record(Self.lost, of: "client", at: at(second)) }
        return reach
    }

    @Test("Five requests without an answer over five seconds, and a success of others in that time: it is cut off")
    func cutOff() {
        var reach = reach(unansweredAt: [0, 1, 2, 3, 5])
        #expect(reach.update(lastSuccess: at(4)) == nil, "it might have been on its way")
        #expect(reach.update(lastSuccess: at(5)) == .lost(code: "timeout", clients: ["client"]))
        #expect(reach.isCutOff)
        #expect(reach.update(lastSuccess: at(9)) == nil, "it is reported once")
        reach.record(Self.lost, of: "client", at: at(15))
        #expect(reach.update(lastSuccess: at(9)) == .stillLost(code: "timeout"))
    }

    @Test("Too few, or within too short a time, is chance", arguments: [[0, 1, 2, 5], [0, 1, 2, 3, 4], []])
    func chance(seconds: [Int]) {
        var reach = reach(unansweredAt: seconds)
        #expect(reach.update(lastSuccess: at(60)) == nil)
        #expect(!reach.isCutOff)
    }

    @Test("Without a success of others the endpoint fails for all", arguments: [nil, -10])
    func outage(success: Int?) {
        var reach = reach(unansweredAt: Array(0..<60))
        #expect(reach.update(lastSuccess: success.map { at($0) }) == nil)
    }

    @Test("Any answer shows that the way is good, also a refusal")
    func answered() {
        var reach = reach(unansweredAt: Array(0..<10))
        _ = reach.update(lastSuccess: at(9))
        reach.record(Self.refused, of: "client", at: at(20))
        #expect(reach.update(lastSuccess: at(9)) == .restored)
        #expect(!reach.isCutOff)
        #expect(reach.update(lastSuccess: at(30)) == nil)
    }

    @Test("Requests that were not sent, or given up, show nothing")
    func notSent() {
        var reach = reach(unansweredAt: [0, 1, 2, 3])
        reach.record(.failed(.notSent(code: "withheld"), retryAfter: nil), of: "client", at: at(5))
        reach.record(.failed(.givenUp(code: "cancelled"), retryAfter: nil), of: "client", at: at(6))
        #expect(reach.update(lastSuccess: at(60)) == nil)
        reach.record(Self.lost, of: "other", at: at(7))
        #expect(reach.update(lastSuccess: at(60)) == .lost(code: "timeout", clients: ["client", "other"]))
    }
}
