import Clocks
import GoogleOAuth
import Observability
import Secrets
import Store
import Testing

@testable import RefreshEngine

/// A worker stood still with a good answer in its hands; another took the lease that had run out, and asked again.
@Suite
struct LateSuccessTests {
    private let now = ManualTime().now

    private func grant() throws -> Grant {
        Grant.connected(
            id: GrantID(rawValue: 1),
            userID: "user",
            handover: Handover(clientID: "client", refreshToken: Grant.RefreshToken(sealed: try sealed("old"))),
            dueAt: now,
            at: now
        ).grant
    }

    private func sealed(_ text: String) throws -> SealedSecret {
        let key = try KeyRing(keys: [SealingKey.random()])
        return try key.seal(Secret(text), for: SealContext(owner: 1, column: "refresh_token"))
    }

    private func success(rotated: SealedSecret?) throws -> Finding {
        let access = Grant.AccessToken(sealed: try sealed("access"), obtainedAt: now, expiresAt: now + .seconds(3600))
        return finding(
            .granted(RefreshedTokens(accessToken: access, rotated: rotated.map { Grant.RefreshToken(sealed: $0) }))
        )
    }

    private func finding(_ answer: Finding.Answer) -> Finding {
        let attempt = Attempt(grant: GrantID(rawValue: 1), clientID: "client", claim: 7, generation: 1)
        return Finding(attempt: attempt, answer: answer)
    }

    private func decide(_ finding: Finding, _ grant: inout Grant) -> Ruling {
        var health = ClientHealth(epoch: "boot")
        let moment = Moment(now: now, instant: BootInstant(milliseconds: 1_000_000), unit: 0.5)
        return RefreshRules(maxRate: 200).decide(finding, grant: &grant, health: &health, at: moment)
    }

    @Test("the successor of a token that another worker found spent is stored, and the grant lives")
    func successorIsKept() throws {
        var grant = try grant()
        _ = grant.disconnect(reason: .invalidGrant, at: now)
        let successor = try sealed("new")
        let ruling = decide(try success(rotated: successor), &grant)
        #expect(grant.refreshToken?.sealed == successor)
        #expect(grant.state == .active)
        #expect(ruling.events.contains { $0.from == .disconnected && $0.to == .active })
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
            Handover(clientID: "client", refreshToken: brought),
            bringsOtherRefreshToken: true,
            switchesAccount: false,
            dueAt: now,
            at: now
        )
        #expect(decide(try success(rotated: try sealed("new")), &reconnected).outcome == .void)
        #expect(reconnected.refreshToken == brought)
    }
}
