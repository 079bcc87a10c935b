import Crypto
import GoogleOAuth
import TestSupport

@testable import Base
@testable import Scheduler
@testable import Storage

/// The start of every ``ManualTime`` of these tests.
let start = ManualTime().now

enum Sample {
    /// Returns a value in the form of a sealed one, with `text` in place of the ciphertext.
    static func sealed(_ text: String) throws -> SealedSecret {
        let nonce = [UInt8](repeating: 7, count: 12)
        let tag = [UInt8](repeating: 9, count: 16)
        return try SealedSecret(bytes: [2, 8] + Array("0a1b2c3d".utf8) + nonce + Array(text.utf8) + tag)
    }

    static func refreshToken(_ text: String = "refresh") throws -> Grant.RefreshToken {
        Grant.RefreshToken(sealed: try sealed(text))
    }

    static func accessToken(
        _ text: String = "access",
        obtainedAt: Timestamp = start,
        lifetime: Duration = .seconds(3600)
    ) throws -> Grant.AccessToken {
        Grant.AccessToken(sealed: try sealed(text), obtainedAt: obtainedAt, expiresAt: obtainedAt + lifetime)
    }

    static func grant(
        _ number: Int64 = 1,
        state: GrantState = .active,
        reason: GrantReason = .none,
        isProven: Bool = true,
        hasRefreshToken: Bool = true,
        accessToken: Grant.AccessToken? = nil,
        dueAt: Timestamp? = start,
        failures: Int = 0,
        failingSince: Timestamp? = nil,
        lastAttemptAt: Timestamp? = nil,
        revocationAskedAt: Timestamp? = nil
    ) throws -> Grant {
        Grant(
            id: GrantID(rawValue: number),
            userID: "user \(number)",
            connection: .default,
            createdAt: start,
            clientID: "client",
            owner: Grant.Owner(),
            scope: "openid",
            state: state,
            reason: reason,
            since: start,
            generation: 3,
            refreshToken: hasRefreshToken ? try refreshToken() : nil,
            accessToken: accessToken,
            dueAt: dueAt,
            failures: failures,
            failingSince: failingSince,
            lastSuccessAt: nil,
            lastAttemptAt: lastAttemptAt,
            isProven: isProven,
            revocationAskedAt: revocationAskedAt,
            lease: nil
        )
    }

    /// Returns a good answer, in the form that the rules get.
    static func granted(
        at now: Timestamp = start,
        scope: String? = nil,
        rotated: Grant.RefreshToken? = nil,
        lifetime: Duration = .seconds(3600)
    ) throws -> RefreshResult.Answer {
        .granted(
            RefreshedTokens(
                accessToken: try accessToken("new access", obtainedAt: now, lifetime: lifetime),
                rotated: rotated,
                scope: scope
            )
        )
    }
}

/// One client and its grants under the rules, with clocks that a test moves.
struct RulesFixture {
    static let claim: Int64 = 77

    let rules = RefreshRules(maxRate: 200)
    var health = ClientHealth(epoch: "boot")
    var now = start
    var instant = BootInstant(milliseconds: 1_000_000)
    var jitter = 0.5

    mutating func advance(by span: Duration) {
        now = now + span
        instant = instant + span
    }

    /// Lets the rules decide about an answer, by default under a claim that is still valid.
    mutating func decide(
        _ answer: RefreshResult.Answer,
        on grant: inout Grant,
        claim: Int64 = RulesFixture.claim,
        leasedAs lease: Int64? = RulesFixture.claim,
        generation: Int64? = nil,
        secretFingerprint: ClientSecretFingerprint = .none
    ) -> RefreshDecision {
        grant.setLease(
            lease.map { Lease(owner: "worker", claim: $0, epoch: "boot", until: instant + .seconds(30)) }
        )
        let claim = RefreshClaim(
            grant: grant.id,
            clientID: grant.clientID,
            number: claim,
            generation: generation ?? grant.generation,
            lastAttemptAt: grant.lastAttemptAt
        )
        let result = RefreshResult(claim: claim, answer: answer, secretFingerprint: secretFingerprint)
        let decision = rules.decide(
            DecisionContext(result: result, grant: grant, health: health, now: now, instant: instant, jitter: jitter)
        )
        if let decided = decision.grant { grant = decided }
        health = decision.health
        return decision
    }

    mutating func refuse(_ verdict: RefreshFailure, on grant: inout Grant, retryAfter: Duration? = nil)
        -> RefreshDecision
    {
        decide(.failed(verdict, retryAfter: retryAfter), on: &grant)
    }

    /// Records answers about proven grants.
    mutating func recordAnswers(valid: Int, invalid: Int) {
        for number in 0..<(valid + invalid) { health.recordAnswer(isRefusal: number >= valid, at: now) }
    }

    /// Lets the refusals so far count no more, as ten minutes do.
    mutating func forgetRefusals() { health.rate = RefusalRate() }
}

extension RefreshResult {
    /// Returns the result with another claim.
    func changingClaim(_ change: (inout RefreshClaim) -> Void) -> RefreshResult {
        var claim = claim
        change(&claim)
        return RefreshResult(claim: claim, answer: answer)
    }
}
