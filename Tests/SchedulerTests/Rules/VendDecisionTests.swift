import Base
import Crypto
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

@Suite("The decision for a caller whose token Google refused")
struct RenewalDecisionTests {
    /// Seconds since the last attempt (`nil`: there was none), and the decision if the stored token is the rejected
    /// one.
    @Test(
        "A refresh, but not within ten seconds of the last attempt",
        arguments: [
            (nil, .refresh), (10, .refresh), (11, .refresh), (9, .wait(.seconds(1))), (0, .wait(.seconds(10))),
            (-3, .refresh),
        ] as [(Int?, VendDecision)]
    )
    func pause(secondsSince: Int?, expected: VendDecision) throws {
        let last = secondsSince.map { start - .seconds($0) }
        let grant = try Sample.grant(accessToken: Sample.accessToken(), lastAttemptAt: last)
        #expect(VendDecision.make(for: grant, storesRejectedToken: true, at: start) == expected)
    }

    @Test("The pause doubles from 20 s to ten minutes after too many quick refreshes, whatever a retry waits")
    func slowedPause() throws {
        var grant = try Sample.grant(lastAttemptAt: nil)
        var waits: [VendDecision] = []
        for count in 1...DuePolicy.quickRefreshesAllowed + 7 {
            let tokens = RefreshedTokens(accessToken: try Sample.accessToken())
            _ = grant.refreshed(tokens, isQuick: true, at: start) { _ in start }
            guard count >= DuePolicy.quickRefreshesAllowed else { continue }
            waits.append(VendDecision.make(for: grant, storesRejectedToken: true, at: start))
        }
        #expect(waits == [10, 20, 40, 80, 160, 320, 600, 600].map { .wait(.seconds($0)) })
    }

    @Test("Another live token is served at once, an expired one is refreshed, independent of the last attempt")
    func otherToken() throws {
        let living = try Sample.grant(accessToken: Sample.accessToken(), lastAttemptAt: start)
        #expect(VendDecision.make(for: living, storesRejectedToken: false, at: start) == .serve)
        let token = try Sample.accessToken(obtainedAt: start - .seconds(3600))
        let dead = try Sample.grant(accessToken: token, lastAttemptAt: start)
        #expect(VendDecision.make(for: dead, storesRejectedToken: false, at: start) == .refresh)
    }

    @Test("Without a refresh token only another stored token is served", arguments: [true, false])
    func noRefreshToken(storesRejectedToken: Bool) throws {
        let grant = try Sample.grant(hasRefreshToken: false, accessToken: Sample.accessToken())
        let decision = VendDecision.make(for: grant, storesRejectedToken: storesRejectedToken, at: start)
        #expect(decision == (storesRejectedToken ? .refuse : .serve))
    }

    @Test(
        "A grant that shows as disconnected is refused",
        arguments: [GrantState.suspended, .reauthRequired, .disconnected]
    )
    func refused(state: GrantState) throws {
        let grant = try Sample.grant(state: state, accessToken: Sample.accessToken())
        #expect(VendDecision.make(for: grant, storesRejectedToken: false, at: start) == .refuse)
        #expect(VendDecision.make(for: grant, storesRejectedToken: true, at: start) == .refuse)
    }

    @Test("However a caller rejects tokens, each is recognised as the worker's own until it expires")
    func issuedTokens() throws {
        var grant = try Sample.grant(accessToken: Sample.accessToken(), lastAttemptAt: nil)
        var last = start - .seconds(3600)
        for second in 0..<3600 {
            let now = start + .seconds(Int64(second))
            let token = try Sample.accessToken(obtainedAt: now)
            let isQuick = DuePolicy.isQuick(token, afterSuccessAt: last, at: now)
            // The caller waits if one more rejection would slow the grant down.
            guard !isQuick || grant.quickRefreshes < DuePolicy.quickRefreshesAllowed,
                VendDecision.make(for: grant, storesRejectedToken: true, at: now) == .refresh
            else { continue }
            let tokens = RefreshedTokens(accessToken: token, digest: IssuedTokens.digest(of: Secret("\(second)")))
            _ = grant.refreshed(tokens, isQuick: isQuick, at: now) { _ in now }
            last = now
        }
        #expect(grant.issuedTokens.contains(IssuedTokens.digest(of: Secret("0"))))
    }
}
