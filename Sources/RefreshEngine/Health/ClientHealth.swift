package import Clocks
package import Scheduler
package import Store

/// What is known of one client id, shared by all workers through the store.
package struct ClientHealth: Hashable, Sendable {
    /// A grant that was ended because `invalid_grant` was believed at once; it is called back if a wave shows soon after.
    package struct Believed: Hashable, Sendable {
        package var grant: GrantID
        package var at: Timestamp

        package init(grant: GrantID, at: Timestamp) {
            self.grant = grant
            self.at = at
        }
    }

    /// How many grants can be called back; a client that ends more in ten minutes usually does so.
    package static let mostBelieved = 200
    /// How long an end that was believed at once can be called back.
    package static let recallSpan: Duration = .seconds(600)

    /// The epoch of the instants below: those of another boot mean nothing.
    package var epoch: String
    package var breaker: Breaker
    package var limits: Pacer.Limits
    package var window: AnswerWindow
    package var rate: InvalidGrantRate
    package var believed: [Believed]
    /// The time of the last refresh of a proven grant of this client.
    package var provenSuccessAt: Timestamp?
    /// The time at which the endpoint last worked again after it had failed for all.
    package var outageEndedAt: Timestamp?
    /// The first of the endpoint's failures in a row.
    package var failingSince: BootInstant?
    /// Refusals of proven grants that may be the client's fault, since a proven grant last succeeded.
    package var refusals: RefusalRow

    package init(
        epoch: String,
        breaker: Breaker = Breaker(),
        limits: Pacer.Limits = Pacer.Limits(),
        window: AnswerWindow = AnswerWindow(),
        rate: InvalidGrantRate = InvalidGrantRate(),
        believed: [Believed] = [],
        provenSuccessAt: Timestamp? = nil,
        outageEndedAt: Timestamp? = nil,
        failingSince: BootInstant? = nil,
        refusals: RefusalRow = RefusalRow()
    ) {
        self.epoch = epoch
        self.breaker = breaker
        self.limits = limits
        self.window = window
        self.rate = rate
        self.believed = Array(believed.suffix(Self.mostBelieved))
        self.provenSuccessAt = provenSuccessAt
        self.outageEndedAt = outageEndedAt
        self.failingSince = failingSince
        self.refusals = refusals
    }

    /// The same health in another epoch, without the instants of the old epoch's clock.
    package func inEpoch(_ epoch: String) -> ClientHealth {
        guard epoch != self.epoch else { return self }
        return ClientHealth(
            epoch: epoch,
            window: window,
            rate: rate,
            believed: believed,
            provenSuccessAt: provenSuccessAt,
            outageEndedAt: outageEndedAt
        )
    }

    /// Judges one more `invalid_grant`; `uncounted` is 1 if it is not among the noted answers.
    package func level(at now: Timestamp, uncounted: Int = 0) -> InvalidGrantRate.Level {
        window.isWave ? .wave : rate.level(at: now, uncounted: uncounted)
    }

    /// Notes an answer that says whether a token lives: any success, and the refusals of proven grants.
    package mutating func note(saysInvalid: Bool, at now: Timestamp) {
        window.append(saysInvalid: saysInvalid)
        rate.record(saysInvalid: saysInvalid, at: now)
    }

    /// Notes that a grant was ended; `atOnce` without a second opinion.
    package mutating func noteEnd(of grant: GrantID, atOnce: Bool, at now: Timestamp) {
        rate.recordEnd(at: now)
        guard atOnce else { return }
        believed.removeAll { now - $0.at >= Self.recallSpan || $0.at > now }
        believed = believed.suffix(Self.mostBelieved - 1) + [Believed(grant: grant, at: now)]
    }

    /// The grants to call back because a wave has shown; they are forgotten here.
    package mutating func takeBelieved(at now: Timestamp) -> [GrantID] {
        guard !believed.isEmpty else { return [] }
        defer { believed = [] }
        rate.forgetEnds()
        return believed.filter { now - $0.at < Self.recallSpan && $0.at <= now }.map(\.grant)
    }
}

/// Refusals in a row that blame the client or the grant, until a proven grant succeeds.
package struct RefusalRow: Hashable, Sendable {
    /// While others succeed now and then, a row does not last as long.
    package static let shortestSpan: Duration = .seconds(60)

    package var since: BootInstant?
    package var count: Int
    package var grants: [Int64]

    package init(since: BootInstant? = nil, count: Int = 0, grants: [Int64] = []) {
        self.since = since
        self.count = count
        self.grants = Array(grants.prefix(Breaker.grantsToOpen))
    }

    /// Adds a refusal; returns `true` if the row is long enough to be the client's fault.
    mutating func add(_ grant: GrantID, at now: BootInstant) -> Bool {
        let first = since ?? now
        since = first
        count = min(count + 1, 1_000_000)
        if grants.count < Breaker.grantsToOpen, !grants.contains(grant.rawValue) { grants.append(grant.rawValue) }
        return count >= Breaker.failuresToOpen && grants.count >= Breaker.grantsToOpen
            && now - first >= Self.shortestSpan
    }
}
