import Base
import Storage
import Testing

@testable import Scheduler

@Suite("The decision to serve the stored token")
struct VendDecisionTests {
    /// Seconds of life left (`nil`: no token), seconds asked for, and the decisions with and without a refresh token.
    @Test(
        "It depends on the remaining life and the requested life",
        arguments: [
            (3600, 0, VendDecision.serve, VendDecision.serve), (301, 300, .serve, .serve), (300, 300, .refresh, .serve),
            (299, 300, .refresh, .serve), (1, 0, .serve, .serve), (0, 0, .refresh, .refuse), (-5, 0, .refresh, .refuse),
            (10, -60, .serve, .serve), (-5, -60, .refresh, .refuse), (nil, 0, .refresh, .refuse),
            (nil, 9_999_999, .refresh, .refuse), (3600, 9_999_999, .refresh, .serve),
        ] as [(Int?, Int, VendDecision, VendDecision)]
    )
    func life(left: Int?, asked: Int, refreshable: VendDecision, not: VendDecision) throws {
        let token = try left.map {
            try Sample.accessToken(obtainedAt: start - .seconds(10), lifetime: .seconds($0 + 10))
        }
        for (hasRefreshToken, expected) in [(true, refreshable), (false, not)] {
            for state in [GrantState.active, .retrying] {
                let grant = try Sample.grant(state: state, hasRefreshToken: hasRefreshToken, accessToken: token)
                #expect(VendDecision.make(for: grant, minimumLife: .seconds(asked), at: start) == expected)
            }
        }
    }

    @Test(
        "A grant that shows as disconnected is refused, even with a stored token",
        arguments: [GrantState.suspended, .reauthRequired, .disconnected]
    )
    func refused(state: GrantState) throws {
        let grant = try Sample.grant(state: state, accessToken: Sample.accessToken())
        #expect(VendDecision.make(for: grant, minimumLife: .zero, at: start) == .refuse)
    }

    @Test("A token that was stored by a clock ahead of this one is not served", arguments: [(5, true), (6, false)])
    func fromTheFuture(seconds: Int, isBelieved: Bool) throws {
        let token = try Sample.accessToken(obtainedAt: start + .seconds(seconds))
        let grant = try Sample.grant(accessToken: token)
        #expect(VendDecision.make(for: grant, minimumLife: .zero, at: start) == (isBelieved ? .serve : .refresh))
        #expect((VendDecision.remainingLife(of: grant, at: start) != nil) == isBelieved)
    }
}

@Suite("The due time of a grant in good order")
struct DueTimesTests {
    @Test("At once without a live access token, at its end without a refresh token, else by the policy")
    func due() throws {
        #expect(DuePolicy.due(try Sample.grant(), at: start) == start)
        let dead = try Sample.accessToken(obtainedAt: start - .seconds(3600))
        #expect(DuePolicy.due(try Sample.grant(accessToken: dead), at: start) == start)
        let living = try Sample.accessToken()
        #expect(DuePolicy.due(try Sample.grant(0, accessToken: living), at: start) == start + .seconds(3000))
        let half = try Sample.grant(1 << 62, accessToken: living)
        #expect(DuePolicy.due(half, at: start) == start + .seconds(1500))
        let bare = try Sample.grant(hasRefreshToken: false, accessToken: living)
        #expect(DuePolicy.due(bare, at: start) == start + .seconds(3600))
    }
}
