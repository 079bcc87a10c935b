import Base
import Glibc
import GoogleOAuth
import Telemetry
import Testing

@testable import Scheduler
@testable import Storage

/// Random sequences of answers, steps of the clock, reconnects and security events, with the invariants checked after
/// each.
@Suite("The refresh rules under random sequences", .timeLimit(.minutes(10)))
struct RuleFuzzTests {
    private static let verdicts: [RefreshFailure] = [
        .invalidGrant, .invalidGrant, .signInRequired(code: "invalid_rapt"), .blocked(code: "policy_enforced"),
        .clientFault(code: "invalid_client"), .clientOrForeignToken(code: "unauthorized_client"),
        .throttled(code: "http_429"), .endpointFault(code: "http_503"), .noAnswer(code: "timeout"), .notJSON,
        .unknown(code: "new"), .appNotAuthentic, .proofRefused(code: "invalid_dpop_proof"),
    ]

    /// The number of rounds; `REFRESH_WORKER_FUZZ_ROUNDS` sets more.
    private static let rounds = getenv("REFRESH_WORKER_FUZZ_ROUNDS").flatMap { UInt64(String(cString: $0)) } ?? 40

    @Test("keep their invariants", arguments: 1...rounds)
    func invariants(seed: UInt64) throws {
        var model = try RuleModel(seed: seed)
        for step in 0..<300 {
            let problem = try model.step(verdicts: Self.verdicts)
            #expect(problem == nil, "seed \(seed), step \(step): \(problem ?? "")")
            if problem != nil { return }
        }
    }
}

private struct RuleModel {
    let random: SeededRandom
    var fixture = RulesFixture()
    var grants: [Grant]
    var tokens = 0

    init(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        grants = try (1...6).map { try Sample.grant($0, isProven: $0 > 2) }
    }

    private func draw(_ count: Int) -> Int { Int(random.nextBits() % UInt64(count)) }

    /// Applies one random event to one grant; returns a description of a violated invariant.
    mutating func step(verdicts: [RefreshFailure]) throws -> String? {
        let place = draw(grants.count)
        switch draw(12) {
        case 0: fixture.now = fixture.now + .seconds(draw(200_000) - 100_000)
        case 1: return try reconnect(place)
        case 2:
            _ = grants[place].disconnectByEvent(reason: .tokensRevoked, at: fixture.now)
            return grants[place].refreshToken == nil ? nil : "an ended grant kept its token"
        case 3: _ = grants[place].recall(confirmAt: fixture.now + .seconds(300), at: fixture.now)
        case 4...6: fixture.advance(by: .seconds(draw(4_000)))
        default: return try answer(place, verdicts)
        }
        return nil
    }

    private mutating func reconnect(_ place: Int) throws -> String? {
        tokens += 1
        let former = grants[place].generation
        _ = grants[place].reconnect(
            IncomingTokens(clientID: "client", refreshToken: try Sample.refreshToken("brought \(tokens)")),
            replacesRefreshToken: true,
            discardsStored: false,
            dueAt: fixture.now,
            at: fixture.now
        )
        return grants[place].generation > former ? nil : "a reconnect did not raise the generation"
    }

    private mutating func answer(_ place: Int, _ verdicts: [RefreshFailure]) throws -> String? {
        var grant = grants[place]
        guard !grant.state.endsRefreshes, grant.refreshToken != nil else { return nil }
        fixture.jitter = random.nextUnit()
        let before = grant
        tokens += 1
        let rotated = draw(3) == 0 ? try Sample.refreshToken("rotated \(tokens)") : nil
        let lifetimes = [1, 30, 300, 3600, 40_000_000]
        let isGood = draw(2) == 0
        let access = try Sample.accessToken(
            "access \(tokens)",
            obtainedAt: fixture.now,
            lifetime: .seconds(lifetimes[draw(lifetimes.count)])
        )
        let answer: RefreshResult.Answer =
            isGood
            ? .granted(RefreshedTokens(accessToken: access, rotated: rotated))
            : .failed(verdicts[draw(verdicts.count)], retryAfter: nil)
        let decision = fixture.decide(answer, on: &grant)
        grants[place] = grant
        if let problem = Self.problem(after: decision, grant, before, at: fixture.now) { return problem }
        if isGood, grant.accessToken?.sealed != access.sealed { return "a fresh access token was not stored" }
        if isGood, let rotated, grant.refreshToken != rotated { return "a rotated token was lost" }
        if !isGood, grant.refreshToken != before.refreshToken { return "a refusal changed the refresh token" }
        let stored = fixture.health.stored
        if ClientHealth(stored: stored, epoch: "boot").stored != stored { return "the health is not read as written" }
        if stored.count > 12_000 { return "the health has \(stored.count) bytes" }
        return nil
    }

    private static func problem(after decision: RefreshDecision, _ grant: Grant, _ before: Grant, at now: Timestamp)
        -> String?
    {
        if let lease = grant.lease, !lease.isOfEndedRequest { return "the lease was kept" }
        if grant.generation < before.generation { return "the generation went back" }
        if let dueAt = grant.dueAt, dueAt <= now { return "due in the past after \(decision.outcome)" }
        if grant.state.endsRefreshes != (grant.dueAt == nil) { return "due time and state \(grant.state) disagree" }
        let isNew = grant.accessToken != before.accessToken
        if isNew, let end = grant.accessToken?.expiresAt, end > now + .seconds(86_400) { return "expires too late" }
        if grant.state == .active, grant.suspectedSince != nil { return "an active grant is suspected" }
        if before.state == .suspended, decision.outcome == .held, grant.state.isConnected {
            return "a suspended grant shows as connected"
        }
        return nil
    }
}
