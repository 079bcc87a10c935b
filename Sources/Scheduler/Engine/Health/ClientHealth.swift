package import Base
package import Storage

/// The health of one client id, shared by all workers through the store.
package struct ClientHealth: Hashable, Sendable {
    /// A grant that an `invalid_grant` ended without confirmation; it is recalled if a wave shows soon after.
    package struct UnconfirmedEnd: Hashable, Sendable {
        package var grant: GrantID
        package var at: Timestamp

        package init(grant: GrantID, at: Timestamp) {
            self.grant = grant
            self.at = at
        }
    }

    /// The largest number of grants that can be recalled; a client that ends more in ten minutes usually does so.
    package static let unconfirmedEndsKept = 200
    /// The time during which a grant that was ended without confirmation can be recalled.
    package static let recallSpan: Duration = .seconds(600)

    /// The epoch of the boot instants below; instants of another epoch are not comparable.
    package var epoch: String
    package var breaker: Breaker
    package var limits: Pacer.Limits
    package var recentAnswers: RecentAnswers
    package var rate: InvalidGrantRate
    package var unconfirmedEnds: [UnconfirmedEnd]
    /// The time of the last refresh of a proven grant of this client.
    package var provenSuccessAt: Timestamp?
    /// The client secret that this refresh was made with.
    package var provenClientSecret: ClientSecretFingerprint
    /// The time at which the endpoint last worked again after it had failed for every grant.
    package var outageEndedAt: Timestamp?
    /// The instant of the first of the endpoint's failures in a row.
    package var failingSince: BootInstant?
    /// The refusals since the last success of a proven grant that may be the client's fault.
    package var refusals: ConsecutiveRefusals

    package init(
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
    package func inEpoch(_ epoch: String) -> ClientHealth {
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
    package mutating func recordAnswer(isInvalidGrant: Bool, at now: Timestamp) {
        recentAnswers.append(isInvalidGrant: isInvalidGrant)
        rate.record(isInvalidGrant: isInvalidGrant, at: now)
    }

    /// Records that a grant was ended; without confirmation it can be recalled.
    package mutating func recordEnd(of grant: GrantID, isConfirmed: Bool, at now: Timestamp) {
        rate.recordEnd(at: now)
        guard !isConfirmed else { return }
        unconfirmedEnds.removeAll { now - $0.at >= Self.recallSpan || $0.at > now }
        let kept = unconfirmedEnds.suffix(Self.unconfirmedEndsKept - 1)
        unconfirmedEnds = kept + [UnconfirmedEnd(grant: grant, at: now)]
    }

    /// The remaining time in which a wave can still undo the end of a grant, or `nil` if none can.
    package func recallTimeLeft(of grant: GrantID, at now: Timestamp) -> Duration? {
        guard let end = unconfirmedEnds.last(where: { $0.grant == grant }), end.at <= now else { return nil }
        let left = end.at + Self.recallSpan - now
        return left > .zero ? left : nil
    }

    /// Removes and returns the grants to recall because a wave has shown.
    package mutating func takeUnconfirmedEnds(at now: Timestamp) -> [GrantID] {
        guard !unconfirmedEnds.isEmpty else { return [] }
        defer { unconfirmedEnds = [] }
        rate.forgetEnds()
        return unconfirmedEnds.filter { now - $0.at < Self.recallSpan && $0.at <= now }.map(\.grant)
    }
}
