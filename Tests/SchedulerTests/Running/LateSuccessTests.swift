import GoogleOAuth
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Scheduler
@testable import Storage

/// A worker stood still with a good answer; another took the lease after it had run out, and sent the token again.
@Suite
struct LateSuccessTests {
    private let now = ManualTime().now

    private func grant() throws -> Grant {
        Grant.connected(
            id: GrantID(rawValue: 1),
            userID: "user",
            incoming: IncomingTokens(clientID: "client", refreshToken: Grant.RefreshToken(sealed: try sealed("old"))),
            dueAt: now,
            at: now
        ).grant
    }

    private func sealed(_ text: String) throws -> SealedSecret {
        let key = try KeyRing(keys: [RingKey.random()])
        return try key.seal(Secret(text), for: SealContext(owner: 1, column: "refresh_token"))
    }

    private func success(rotated: SealedSecret?, sent: Grant.RefreshToken? = nil) throws -> RefreshResult {
        let access = Grant.AccessToken(sealed: try sealed("access"), obtainedAt: now, expiresAt: now + .seconds(3600))
        return result(
            .granted(RefreshedTokens(accessToken: access, rotated: rotated.map { Grant.RefreshToken(sealed: $0) })),
            sent: sent
        )
    }

    private func result(_ answer: RefreshResult.Answer, sent: Grant.RefreshToken? = nil) -> RefreshResult {
        let claim = RefreshClaim(
            grant: GrantID(rawValue: 1),
            clientID: "client",
            number: 7,
            generation: 1,
            refreshToken: sent
        )
        return RefreshResult(claim: claim, answer: answer)
    }

    private func decide(_ result: RefreshResult, _ grant: inout Grant, at now: Timestamp? = nil) -> RefreshDecision {
        var health = ClientHealth(epoch: "boot")
        return decide(result, &grant, &health, at: now)
    }

    private func decide(
        _ result: RefreshResult,
        _ grant: inout Grant,
        _ health: inout ClientHealth,
        at now: Timestamp? = nil
    ) -> RefreshDecision {
        let context = DecisionContext(
            result: result,
            grant: grant,
            health: health,
            now: now ?? self.now,
            instant: BootInstant(milliseconds: 1_000_000),
            jitter: 0.5
        )
        let decision = RefreshRules(maxRate: 200).decide(context)
        if let decided = decision.grant { grant = decided }
        health = decision.health
        return decision
    }

    @Test("the successor of a token that another worker found spent is stored, and the grant stays active")
    func successorIsKept() throws {
        var grant = try grant()
        _ = grant.disconnect(reason: .invalidGrant, at: now)
        let successor = try sealed("new")
        let decision = decide(try success(rotated: successor), &grant)
        #expect(grant.refreshToken?.sealed == successor)
        #expect(grant.state == .active)
        #expect(decision.events.contains { $0.from == .disconnected && $0.to == .active })
    }

    @Test("the successor is stored after a bare reconnect, and after a recall", arguments: [true, false])
    func successorAfterRevival(reconnects: Bool) throws {
        var grant = try grant()
        let sent = grant.refreshToken
        _ = grant.disconnect(reason: .invalidGrant, at: now)
        if reconnects {
            _ = grant.reconnect(
                IncomingTokens(clientID: "client"),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: now,
                at: now
            )
        } else {
            _ = grant.recall(confirmAt: now + .seconds(300), at: now)
        }
        let successor = try sealed("new")
        #expect(decide(try success(rotated: successor, sent: sent), &grant).outcome == .refreshed)
        #expect(grant.refreshToken?.sealed == successor && grant.state == .active)
    }

    @Test("a result whose tokens are stored is not late, even if an app has brought a new access token")
    func storedAlready() throws {
        var grant = try grant()
        let successor = try sealed("new")
        let result = try success(rotated: successor, sent: grant.refreshToken)
        #expect(decide(result, &grant).outcome == .refreshed)
        let brought = Grant.AccessToken(sealed: try sealed("app"), obtainedAt: now, expiresAt: now + .seconds(7200))
        _ = grant.reconnect(
            IncomingTokens(clientID: "client", accessToken: brought),
            replacesRefreshToken: false,
            discardsStored: false,
            dueAt: now,
            at: now
        )
        let stored = grant
        #expect(decide(result, &grant).outcome == .refreshed)
        #expect(grant == stored)
    }

    @Test("a result whose token was stored counts as stored, even if the token was replaced since", arguments: 0..<4)
    func storedAndReplaced(replacement: Int) throws {
        var grant = try grant()
        let result = try success(rotated: try sealed("new"), sent: grant.refreshToken)
        #expect(decide(result, &grant).outcome == .refreshed)
        switch replacement {
        case 0:
            let next = try success(rotated: try sealed("newer"), sent: grant.refreshToken).changingClaim {
                $0.number = 8
                $0.generation = grant.generation
            }
            #expect(decide(next, &grant).outcome == .refreshed)
        case 1:
            _ = grant.reconnect(
                IncomingTokens(clientID: "client", refreshToken: Grant.RefreshToken(sealed: try sealed("other"))),
                replacesRefreshToken: true,
                discardsStored: false,
                dueAt: now,
                at: now
            )
        case 2:
            let token = Grant.RefreshToken(sealed: try sealed("sealed by another key"))
            grant.reseal(refreshToken: token, accessToken: nil)
        default:
            _ = grant.disconnectByEvent(reason: .tokensRevoked, at: now)
        }
        let stored = grant
        for _ in 1...5 {
            let decision = decide(result, &grant)
            #expect(decision.outcome == .refreshed && decision.alarm == nil)
        }
        #expect(grant == stored)
    }

    @Test("a current answer is stored though its claim has the number of an earlier one")
    func repeatedClaimNumber() throws {
        var grant = try grant()
        #expect(decide(try success(rotated: try sealed("new"), sent: grant.refreshToken), &grant).outcome == .refreshed)
        let next = try success(rotated: try sealed("newer"), sent: grant.refreshToken).changingClaim {
            $0.generation = grant.generation
        }
        #expect(decide(next, &grant).outcome == .refreshed)
        #expect(grant.refreshToken?.sealed == next.answer.rotated?.sealed)
    }

    @Test("five rotated tokens that cannot be stored within ten minutes raise an alarm")
    func droppedTokens() throws {
        var health = ClientHealth(epoch: "boot")
        for number in 1...5 {
            var grant = try grant()
            let result = try success(rotated: try sealed("dropped"), sent: grant.refreshToken)
            _ = grant.reconnect(
                IncomingTokens(clientID: "client", refreshToken: Grant.RefreshToken(sealed: try sealed("other"))),
                replacesRefreshToken: true,
                discardsStored: false,
                dueAt: now,
                at: now
            )
            let decision = decide(result, &grant, &health)
            #expect(decision.outcome == .void)
            #expect(decision.alarm?.kind == (number < 5 ? nil : .rotatedTokensDropped))
        }
    }

    @Test("invalid_grant after a claim whose result was never committed is doubted, and then ends it as answer_lost")
    func answerLost() throws {
        for failsBetween in [false, true] {
            var grant = try grant()
            var unfinished = result(.withoutRefreshToken).claim
            unfinished.followsUnfinishedClaim = true
            let lease = Lease(owner: "w", claim: 7, epoch: "boot", until: BootInstant(milliseconds: 2_000_000))
            if failsBetween {
                grant.setLease(lease)
                let failure = RefreshResult.Answer.failed(.endpointFault(code: "http_503"), retryAfter: nil)
                #expect(decide(RefreshResult(claim: unfinished, answer: failure), &grant).outcome == .retrying)
                unfinished.followsUnfinishedClaim = false
            }
            grant.setLease(lease)
            let refusal = RefreshResult(claim: unfinished, answer: .failed(.invalidGrant, retryAfter: nil))
            #expect(decide(refusal, &grant).outcome == .held && grant.state == .retrying)
            var other = grant
            #expect(decide(try success(rotated: try sealed("new")), &other).outcome == .refreshed)

            grant.setLease(lease)
            let later = now + RefreshRules.firstConfirmationAfter
            #expect(decide(refusal, &grant, at: later).outcome == .disconnected && grant.reason == .answerLost)
        }
    }

    @Test("a user who ended the grant, or who has signed in again, is left alone")
    func othersAreFenced() throws {
        var ended = try grant()
        _ = ended.disconnectByRequest(revokes: true, at: now)
        #expect(decide(try success(rotated: try sealed("new")), &ended).outcome == .void)
        #expect(ended.state == .disconnected)

        var reconnected = try grant()
        _ = reconnected.disconnect(reason: .invalidGrant, at: now)
        let brought = Grant.RefreshToken(sealed: try sealed("other"))
        _ = reconnected.reconnect(
            IncomingTokens(clientID: "client", refreshToken: brought),
            replacesRefreshToken: true,
            discardsStored: false,
            dueAt: now,
            at: now
        )
        #expect(decide(try success(rotated: try sealed("new")), &reconnected).outcome == .void)
        #expect(reconnected.refreshToken == brought)
    }
}
