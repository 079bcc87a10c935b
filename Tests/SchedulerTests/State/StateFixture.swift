import GoogleOAuth
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage

/// A state under test, with clocks that the test moves.
struct StateFixture {
    var state: RefreshEngineState
    var conditions: RefreshEngineState.Conditions
    private var nextClaim: Int64 = 1

    init(maximumInFlight: Int = 512, maxRate: Double = 200) {
        let time = ManualTime()
        conditions = RefreshEngineState.Conditions(now: time.now, instant: time.sinceBoot)
        let configuration = EngineConfiguration(
            workerName: "worker",
            maxRate: maxRate,
            maximumInFlight: maximumInFlight
        )
        state = RefreshEngineState(configuration: configuration, at: time.sinceBoot)
        state.sharedClock = RefreshEngineState.SharedClock(epoch: "boot")
        // With this latency as many requests as configured are worth having in flight.
        state.inFlightLimit.recordAnswer(.seconds(60), at: time.sinceBoot)
    }

    mutating func pass(_ span: Duration) {
        conditions.now = conditions.now + span
        conditions.instant = conditions.instant + span
    }

    /// The requests that the client's pace gives now.
    func availableRequests(of client: String) -> Int? {
        state.gates[client]?.pacer.available(at: conditions.instant)
    }

    /// Passes the time between claims of few grants.
    mutating func passGathering() { pass(RefreshEngineState.gatheringTime) }

    // MARK: Events

    /// Queues overdue grants of a client, as a scan does.
    mutating func queue(_ numbers: ClosedRange<Int64>, of client: String = "client") {
        guard state.beginReading(client) else { return }
        let page = numbers.map { DueEntry(dueAt: conditions.now + .seconds(-1), id: GrantID(rawValue: $0)) }
        state.pageArrived(page, of: client, after: nil, under: conditions)
    }

    /// Lets the state expect a grant that falls due after a span.
    mutating func expect(_ number: Int64, dueIn span: Duration) {
        let id = GrantID(rawValue: number)
        state.expect(id, of: "client", dueAt: conditions.now + span, at: conditions.now)
    }

    /// Returns the next step of a new round.
    mutating func firstStep() -> RefreshEngineState.DispatchStep {
        var round = state.beginRound()
        return state.nextStep(of: &round, under: conditions)
    }

    /// Begins the claim that is the next step of a new round.
    mutating func beginClaim() throws -> ClaimRequest {
        let step = firstStep()
        let ids = try #require(step.claimed)
        return state.reserve(ids.map { GrantID(rawValue: $0) }, dueBy: conditions.now).request
    }

    /// Reports the arrival of a page of the client's part of the due index.
    mutating func pageArrived(_ page: [DueEntry], after cursor: DueEntry? = nil) {
        state.pageArrived(page, of: "client", after: cursor, under: conditions)
    }

    mutating func nextToProbe() throws -> GrantID {
        let id = state.nextToProbe(of: "client", at: conditions.instant)
        return try #require(id)
    }

    /// Answers a claim as a store that leases all its grants.
    mutating func claimed(_ request: ClaimRequest) throws -> [EngineAction] {
        let grants = try request.ids.map { try leased($0) }
        return state.claimed(grants, for: request, leasesEnd: conditions.instant + .seconds(30)).actions
    }

    /// Puts grants in flight; returns their refreshes.
    mutating func send(_ numbers: ClosedRange<Int64>) throws -> [Refresh] {
        let ids = numbers.map { GrantID(rawValue: $0) }
        let request = state.reserve(ids, dueBy: conditions.now).request
        return try claimed(request).sent
    }

    mutating func leased(_ id: GrantID, state: GrantState = .active) throws -> Grant {
        var grant = try Sample.grant(id.rawValue, state: state)
        grant.setLease(
            Lease(owner: "worker", claim: nextClaim, epoch: "boot", until: conditions.instant + .seconds(30))
        )
        nextClaim += 1
        return grant
    }

    /// Reports results as committed, each with the grant's next due time, and the first ones as stored without health.
    mutating func commit(
        _ refreshes: [Refresh],
        health: ClientHealth = ClientHealth(epoch: "boot"),
        endsOutage: Bool = false,
        plain: Int = 0,
        dueIn span: Duration = .seconds(3000),
        latency: Duration = .milliseconds(100)
    ) throws -> [EngineAction] {
        for (index, refresh) in refreshes.enumerated() {
            refresh.didRead(RefreshResult(claim: refresh.claim, answer: try Sample.granted(), latency: latency))
            let grant = try Sample.grant(refresh.grant.id.rawValue, dueAt: conditions.now + span)
            var decision = RefreshDecision(outcome: .refreshed, grant: grant, health: health)
            decision.effect.endsOutage = endsOutage
            decision.effect.breakerChange = endsOutage ? .closed : nil
            refresh.didStore(StoredDecision(decision, isPlain: index < plain))
        }
        return state.delivered(refreshes, under: conditions)
    }

    /// Reports refreshes whose request was not sent.
    mutating func withhold(_ refreshes: [Refresh]) -> [EngineAction] {
        let answer = RefreshResult.Answer.failed(.notSent(code: "cancelled"), retryAfter: nil)
        for refresh in refreshes {
            refresh.didRead(RefreshResult(claim: refresh.claim, answer: answer))
            refresh.didEnd()
        }
        return state.delivered(refreshes, under: conditions)
    }

    /// Returns the health of a client whose breaker has just opened.
    func openBreaker() -> ClientHealth {
        var health = ClientHealth(epoch: "boot")
        _ = health.breaker.clientFault("invalid_client", at: conditions.instant, jitter: 0.5)
        return health
    }
}

extension [EngineAction] {
    var sent: [Refresh] {
        flatMap { action -> [Refresh] in if case .send(let refreshes) = action { refreshes } else { [] } }
    }

    var wakesLoop: Bool { contains { if case .wakeLoop = $0 { true } else { false } } }

    var reportsIdle: Bool { contains { if case .reportIdle = $0 { true } else { false } } }

    var cancelCount: Int { count { if case .cancel = $0 { true } else { false } } }

    /// The ids of the leases to release.
    var released: Set<Int64> {
        Set(
            flatMap { action -> [Int64] in
                if case .release(let claims, _) = action { claims.keys.map(\.rawValue) } else { [] }
            }
        )
    }

    /// The ends of refreshes, for the callers that wait.
    var completions: [RefreshCompletion] {
        compactMap { if case .complete(_, let completion) = $0 { completion } else { nil } }
    }
}

extension RefreshCompletion {
    var isAbandoned: Bool { if case .abandoned = self { true } else { false } }
    var isElsewhere: Bool { if case .handledElsewhere = self { true } else { false } }
    var isCommitted: Bool { if case .committed = self { true } else { false } }
}

extension RefreshEngineState.DispatchStep {
    /// The ids of the grants to claim.
    var claimed: [Int64]? { if case .claim(let ids, _, _) = self { ids.map(\.rawValue) } else { nil } }
    /// The client that is asked for.
    var client: String? {
        switch self {
        case .claim(_, let client, _), .askForProbe(let client): client
        case .end: nil
        }
    }
    /// The wait at the end of the round.
    var wait: Duration? { if case .end(let wait) = self { wait } else { nil } }
    var isProbe: Bool { if case .askForProbe = self { true } else { false } }
    var isEnd: Bool { if case .end = self { true } else { false } }
}
