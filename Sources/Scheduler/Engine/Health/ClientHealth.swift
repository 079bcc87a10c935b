package import Base
import Storage

/// The health of one client id, shared by all workers through the store.
package struct ClientHealth: Hashable, Sendable {
    /// A grant that an `invalid_grant` ended without confirmation; it is recalled if a wave shows soon after.
    struct UnconfirmedEnd: Hashable, Sendable {
        var grant: GrantID
        var at: Timestamp
    }

    /// The largest number of grants that can be recalled; a client that ends more in ten minutes usually does so.
    static let unconfirmedEndsKept = 200
    /// The time during which a grant that was ended without confirmation can be recalled.
    static let recallSpan: Duration = .seconds(600)

    /// The epoch of the boot instants below; instants of another epoch are not comparable.
    var epoch: String
    package var breaker: Breaker
    package var limits: Pacer.Limits
    var recentAnswers: RecentAnswers
    var rate: InvalidGrantRate
    var unconfirmedEnds: [UnconfirmedEnd]
    /// The time of the last refresh of a proven grant of this client.
    package var provenSuccessAt: Timestamp?
    /// The client secret that this refresh was made with.
    var provenClientSecret: ClientSecretFingerprint
    /// The time at which the endpoint last worked again after it had failed for every grant.
    var outageEndedAt: Timestamp?
    /// The instant of the first of the endpoint's failures in a row.
    var failingSince: BootInstant?
    /// The refusals since the last success of a proven grant that may be the client's fault.
    var refusals: ConsecutiveRefusals

    init(
        epoch: String,
        breaker: Breaker = Breaker(),
        limits: Pacer.Limits = Pacer.Limits(),
        recentAnswers: RecentAnswers = RecentAnswers(),
        rate: InvalidGrantRate = InvalidGrantRate(),
        unconfirmedEnds: [UnconfirmedEnd] = [],
        provenSuccessAt: Timestamp? = nil,
        provenClientSecret: ClientSecretFingerprint = .none,
        outageEndedAt: Timestamp? = nil,
        failingSince: BootInstant? = nil,
        refusals: ConsecutiveRefusals = ConsecutiveRefusals()
    ) {
        self.epoch = epoch
        self.breaker = breaker
        self.limits = limits
        self.recentAnswers = recentAnswers
        self.rate = rate
        self.unconfirmedEnds = Array(unconfirmedEnds.suffix(Self.unconfirmedEndsKept))
        self.provenSuccessAt = provenSuccessAt
        self.provenClientSecret = provenClientSecret
        self.outageEndedAt = outageEndedAt
        self.failingSince = failingSince
        self.refusals = refusals
    }

    /// The same health in another epoch, without the instants of the old epoch's clock.
    func inEpoch(_ epoch: String) -> ClientHealth {
        guard epoch != self.epoch else { return self }
        return ClientHealth(
            epoch: epoch,
            recentAnswers: recentAnswers,
            rate: rate,
            unconfirmedEnds: unconfirmedEnds,
            provenSuccessAt: provenSuccessAt,
            provenClientSecret: provenClientSecret,
            outageEndedAt: outageEndedAt
        )
    }

    /// Evaluates one more `invalid_grant`; `uncounted` is 1 if it is not among the recorded answers.
    package func level(at now: Timestamp, uncounted: Int = 0) -> InvalidGrantRate.Level {
        recentAnswers.isWave ? .wave : rate.level(at: now, uncounted: uncounted)
    }

    /// Records an answer that shows if a token is alive: any success, and the refusals of proven grants.
    mutating func recordAnswer(isInvalidGrant: Bool, at now: Timestamp) {
        recentAnswers.append(isInvalidGrant: isInvalidGrant)
        rate.record(isInvalidGrant: isInvalidGrant, at: now)
    }

    /// Records that a grant was ended; without confirmation it can be recalled.
    mutating func recordEnd(of grant: GrantID, isConfirmed: Bool, at now: Timestamp) {
        rate.recordEnd(at: now)
        guard !isConfirmed else { return }
        unconfirmedEnds.removeAll { now - $0.at >= Self.recallSpan || $0.at > now }
        let kept = unconfirmedEnds.suffix(Self.unconfirmedEndsKept - 1)
        unconfirmedEnds = kept + [UnconfirmedEnd(grant: grant, at: now)]
    }

    /// The remaining time in which a wave can still undo the end of a grant, or `nil` if none can.
    func recallTimeLeft(of grant: GrantID, at now: Timestamp) -> Duration? {
        guard let end = unconfirmedEnds.last(where: { $0.grant == grant }), end.at <= now else { return nil }
        let left = end.at + Self.recallSpan - now
        return left > .zero ? left : nil
    }

    /// Removes and returns the grants to recall because a wave has shown.
    mutating func takeUnconfirmedEnds(at now: Timestamp) -> [GrantID] {
        guard !unconfirmedEnds.isEmpty else { return [] }
        defer { unconfirmedEnds = [] }
        rate.forgetEnds()
        return unconfirmedEnds.filter { now - $0.at < Self.recallSpan && $0.at <= now }.map(\.grant)
    }
}

extension ClientHealth {
    /// Records if the endpoint fails now; returns `true` if this ends an outage.
    ///
    /// The breaker has the answer already.
    mutating func recordOutage(wasFailing: Bool, at now: Timestamp, _ instant: BootInstant) -> Bool {
        let endsOutage = wasFailing && endsOutage(at: now, instant)
        if endsOutage { outageEndedAt = now }
        if !breaker.hasEndpointFailures {
            failingSince = nil
        } else if failingSince == nil {
            failingSince = instant
        }
        return endsOutage
    }

    /// `true` if the endpoint works again after an outage.
    ///
    /// Five failures and one success are an outage only if they took a while and no outage has ended shortly before.
    private func endsOutage(at now: Timestamp, _ instant: BootInstant) -> Bool {
        guard !breaker.endpointIsFailing else { return false }
        let failedFor = failingSince.map { instant - $0 } ?? .zero
        let endedLately =
            outageEndedAt.map { $0 <= now && now - $0 < Breaker.shortestRetryInterval } ?? false
        return failedFor >= Breaker.shortestOutage && !endedLately
    }
}

extension ClientHealth {
    /// Adds plain refreshes, which were stored without this health; returns the changes that have a consequence.
    ///
    /// The result is the same as if each of their batches had been stored with the health at the instant of its commit.
    mutating func add(_ successes: [UncountedSuccesses], at now: Timestamp, _ instant: BootInstant) -> ClientEffect {
        var effect = ClientEffect()
        guard !successes.isEmpty else { return effect }
        let wasFailing = breaker.endpointIsFailing
        for part in successes.sorted(by: { $0.at < $1.at }) {
            let at = min(part.at, now)
            recentAnswers.append(successes: part.count)
            rate.record(successes: part.count, at: at)
            // A later success may be in the health already, and one of a clock that has been set back since.
            if provenSuccessAt.map({ $0 <= at || $0 > now }) ?? true {
                provenSuccessAt = at
                provenClientSecret = ClientSecretFingerprint(rawValue: part.clientSecret)
            }
        }
        refusals = ConsecutiveRefusals()
        effect.breakerChange = breaker.succeeded()
        effect.endsOutage = recordOutage(wasFailing: wasFailing, at: now, instant)
        return effect
    }
}

/// The last answers about one client's proven grants, which distinguish a wave of `invalid_grant` from users who left.
///
/// If something breaks at Google, or in a configuration, many grants answer `invalid_grant` at once although their
/// users never revoked anything. Only proven grants count, so an import of dead tokens does not look like a wave.
struct RecentAnswers: Hashable, Sendable {
    /// The number of answers that are kept.
    static let kept = 200
    /// The smallest number of `invalid_grant` answers in a wave.
    static let fewestInWave = 20
    /// A wave has more than one `invalid_grant` in this many answers.
    static let answersPerInvalid = 5

    /// `true` for each answer of `invalid_grant`, the oldest first.
    private(set) var answers: [Bool]

    init(answers: [Bool] = []) {
        self.answers = Array(answers.suffix(Self.kept))
    }

    mutating func append(isInvalidGrant: Bool) {
        if answers.count >= Self.kept { answers.removeFirst(answers.count - Self.kept + 1) }
        answers.append(isInvalidGrant)
    }

    /// Adds answers that were not `invalid_grant`.
    mutating func append(successes count: Int) {
        let added = [Bool](repeating: false, count: min(max(0, count), Self.kept))
        answers = Array((answers + added).suffix(Self.kept))
    }

    var isWave: Bool {
        let invalid = answers.count { $0 }
        return invalid >= Self.fewestInWave && invalid * Self.answersPerInvalid > answers.count
    }
}

/// The refusals since the last success of a proven grant whose cause may be the client or the grant.
struct ConsecutiveRefusals: Hashable, Sendable {
    /// The shortest time that a row must last; while other grants succeed now and then, a row does not last as long.
    static let shortestSpan: Duration = .seconds(60)

    var since: BootInstant?
    var count: Int
    var grants: [Int64]

    init(since: BootInstant? = nil, count: Int = 0, grants: [Int64] = []) {
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
