package import Base
import Storage

/// The health of one client id, shared by all workers through the store.
package struct ClientHealth: Hashable, Sendable {
    /// A grant that a refusal ended or suspended without confirmation. It is recalled if a wave shows soon after.
    struct UnconfirmedEnd: Hashable, Sendable {
        var grant: GrantID
        var at: Timestamp

        /// `true` if a wave that shows now undoes the end.
        func canBeRecalled(at now: Timestamp) -> Bool {
            // An end in the future was recorded before the clock was set back.
            at <= now && now - at < ClientHealth.recallSpan
        }
    }

    /// The last wave of refusals.
    struct Wave: Hashable, Sendable {
        /// The number of grants in doubt that must work again for each refusal that is then believed.
        ///
        /// One can be chance: a fault of nine in ten requests lets some through. Three in a row, or many more than are
        /// refused, show that the fault is over.
        static let recoveriesForEachRefusal = 3
        private static let maximumRecoveries = 1_000

        /// The time of the last first refusal.
        var lastRefusalAt: Timestamp
        private(set) var recoveries = 0

        init(lastRefusalAt: Timestamp, recoveries: Int = 0) {
            self.lastRefusalAt = lastRefusalAt
            self.recoveries = min(recoveries, Self.maximumRecoveries)
        }

        /// `true` if so many grants have worked again that a refusal shows more about its grant than about the wave.
        var isOver: Bool { recoveries >= Self.recoveriesForEachRefusal }

        /// A grant in doubt has worked again.
        mutating func recordRecovery() { recoveries = min(recoveries + 1, Self.maximumRecoveries) }

        /// A grant in doubt was refused again.
        mutating func recordRefusal() { recoveries = max(0, recoveries - Self.recoveriesForEachRefusal) }
    }

    /// The largest number of grants that can be recalled. A client that ends more in ten minutes usually does so.
    static let maximumUnconfirmedEnds = 200
    /// The time during which a grant that was ended without confirmation can be recalled.
    static let recallSpan = RefusalRate.span
    /// A wave counts if its last first refusal came at most this long before the grant's own.
    static let waveReach = RefreshRules.maximumDoubt

    /// The epoch of the boot instants below. Instants of another epoch are not comparable.
    var epoch: String
    package var breaker = Breaker()
    package var limits = Pacer.Limits()
    var rate = RefusalRate()
    var unconfirmedEnds: [UnconfirmedEnd] = []
    var lastWave: Wave?
    /// The time of the last refresh of a proven grant of this client.
    package var provenSuccessAt: Timestamp?
    /// The fingerprint of the client secret that this refresh was made with.
    var provenSecretFingerprint = ClientSecretFingerprint.none
    /// The time at which the endpoint last worked again after it had failed, or refused the client, for every grant.
    var outageEndedAt: Timestamp?
    /// The instant of the first of the endpoint's failures in a row.
    var failingSince: BootInstant?
    /// The refusals since the last success of a proven grant that are or might be the client's fault.
    var clientErrors = ConsecutiveClientErrors()
    /// The kinds of answers without a token that came last.
    var failures: [ClientFailure] = []

    /// `true` if there was a wave since this first refusal, or within ``waveReach`` before it, and it is not over.
    ///
    /// Before it too, because the rate counts ten minutes: one more grant that is refused later, while all others are
    /// in doubt, does not make a wave again.
    func hasUnendedWave(around first: Timestamp) -> Bool {
        guard let lastWave else { return false }
        return lastWave.lastRefusalAt >= first - Self.waveReach && !lastWave.isOver
    }

    /// Evaluates the recorded refusals. `uncounted` is 1 for one that is not among them.
    package func level(at now: Timestamp, uncounted: Int = 0) -> RefusalRate.Level {
        rate.level(at: now, uncounted: uncounted)
    }

    /// Records an answer that shows if a token is alive: any success, and the refusals of proven grants.
    mutating func recordAnswer(isRefusal: Bool, at now: Timestamp) {
        rate.record(isRefusal: isRefusal, at: now)
    }

    /// Moves times to the clock as it is after a step.
    ///
    /// With grants in doubt, which begin anew then, a wave counts as one of now: what the rate was when they were refused
    /// cannot be told any more.
    mutating func clockStepped(by step: Duration, hasDoubts: Bool, at now: Timestamp) {
        // After a step back only what was recorded since the clock went ahead is wrong, and lies in the future.
        func moved(_ time: Timestamp) -> Timestamp { min(step > .zero ? time + step : time, now) }
        unconfirmedEnds = unconfirmedEnds.map { UnconfirmedEnd(grant: $0.grant, at: moved($0.at)) }
        if hasDoubts {
            lastWave = Wave(lastRefusalAt: now)
        } else if let wave = lastWave {
            lastWave?.lastRefusalAt = moved(wave.lastRefusalAt)
        }
    }

    /// Records that a grant was ended or suspended. Without confirmation it can be recalled.
    mutating func recordEnd(of grant: GrantID, isConfirmed: Bool, at now: Timestamp) {
        rate.recordEnd(at: now)
        guard !isConfirmed else { return }
        unconfirmedEnds.removeAll { !$0.canBeRecalled(at: now) }
        let kept = unconfirmedEnds.suffix(Self.maximumUnconfirmedEnds - 1)
        unconfirmedEnds = kept + [UnconfirmedEnd(grant: grant, at: now)]
    }

    /// The remaining time in which a wave can still undo the end of a grant, or `nil` if none can.
    func recallTimeLeft(of grant: GrantID, at now: Timestamp) -> Duration? {
        guard let end = unconfirmedEnds.last(where: { $0.grant == grant }), end.canBeRecalled(at: now) else {
            return nil
        }
        return end.at + Self.recallSpan - now
    }

    /// Removes and returns the grants to recall because a wave has shown.
    mutating func takeUnconfirmedEnds(at now: Timestamp) -> [GrantID] {
        guard !unconfirmedEnds.isEmpty else { return [] }
        defer { unconfirmedEnds = [] }
        rate.forgetEnds()
        return unconfirmedEnds.filter { $0.canBeRecalled(at: now) }.map(\.grant)
    }
}

extension ClientHealth {
    /// Records if the endpoint fails now, and returns `true` if this ends an outage, or a fault of the client that took
    /// as long. The breaker has the answer already. `former` is the breaker before it.
    mutating func recordOutage(after former: Breaker, at now: Timestamp, instant: BootInstant) -> Bool {
        let endsOutage = endsOutage(after: former, at: instant)
        if endsOutage { outageEndedAt = now }
        if !breaker.hasEndpointFailures {
            failingSince = nil
        } else if failingSince == nil {
            failingSince = instant
        }
        return endsOutage
    }

    /// `true` if endpoint and client work again after failures that took as long as an outage.
    private func endsOutage(after former: Breaker, at instant: BootInstant) -> Bool {
        if former.isOpenForClientFault, !breaker.isOpen, let opening = former.state.opening {
            return instant - opening.since >= Breaker.minimumOutage
        }
        guard former.endpointIsFailing, !breaker.endpointIsFailing, let failingSince else { return false }
        return instant - failingSince >= Breaker.minimumOutage
    }
}

extension ClientHealth {
    /// Adds plain refreshes, which were stored without this health, and returns the changes that have a consequence.
    /// The result is the same as if each of their batches had been stored with the health at the instant of its commit.
    ///
    /// For every other success `RefreshRules.decideGranted` does the same: change both.
    mutating func add(_ successes: [UncountedSuccesses], at now: Timestamp, instant: BootInstant) -> ClientEffect {
        var effect = ClientEffect()
        guard !successes.isEmpty else { return effect }
        let former = breaker
        for part in successes.sorted(by: { $0.at < $1.at }) {
            let at = min(part.at, now)
            rate.record(successes: part.count, at: at)
            if !hasProvenSuccess(after: at, until: now) {
                provenSuccessAt = at
                provenSecretFingerprint = ClientSecretFingerprint(rawValue: part.secretFingerprint)
            }
        }
        clientErrors = ConsecutiveClientErrors()
        effect.breakerChange = breaker.succeeded()
        effect.endsOutage = recordOutage(after: former, at: now, instant: instant)
        return effect
    }

    /// `true` if a success that came after `time` is known already.
    private func hasProvenSuccess(after time: Timestamp, until now: Timestamp) -> Bool {
        // A success in the future was recorded before the clock was set back.
        guard let provenSuccessAt, provenSuccessAt <= now else { return false }
        return provenSuccessAt > time
    }
}

/// The stored form: JSON, so that an operator can read it with the database's own shell.
///
/// A field that is missing or cannot be read counts as unknown: the next answers fill it again.
///
/// Two stored names differ from the properties: `believed` is `unconfirmedEnds`, and `refusals` is `clientErrors`. To
/// change one, write and read both names for one release, because workers of two versions share the row.
extension ClientHealth {
    package init(stored: [UInt8]?, epoch: String) {
        self.init(epoch: epoch)
        guard let stored, let body = JSONValue.object(in: stored), let storedEpoch = body["epoch"]?.string else {
            return
        }
        rate = RefusalRate(body["rate"])
        let ends = (body["believed"]?.array ?? []).compactMap { entry -> UnconfirmedEnd? in
            guard let id = entry["grant"]?.string.flatMap({ GrantID($0) }), let at = entry["at"]?.timestamp else {
                return nil
            }
            return UnconfirmedEnd(grant: id, at: at)
        }
        unconfirmedEnds = ends.suffix(Self.maximumUnconfirmedEnds)
        if let lastRefusalAt = body["unended_wave_at"]?.timestamp {
            lastWave = Wave(lastRefusalAt: lastRefusalAt, recoveries: body["wave_recoveries"]?.boundedCount ?? 0)
        }
        provenSuccessAt = body["proven_success_at"]?.timestamp
        provenSecretFingerprint = ClientSecretFingerprint(stored: body["proven_client_secret"])
        outageEndedAt = body["outage_ended_at"]?.timestamp
        failures = [ClientFailure](body["failures"])
        // The rest counts by the clock of its epoch.
        guard storedEpoch == epoch else { return }
        breaker = Breaker(body["breaker"])
        limits = Pacer.Limits(body["limits"])
        failingSince = body["failing_since"]?.instant
        clientErrors = ConsecutiveClientErrors(body["refusals"])
    }

    var stored: [UInt8] {
        var line = JSONLine()
        line.field("version", 2)
        line.field("epoch", epoch)
        line.object("breaker") { breaker.write(into: &$0) }
        line.object("limits") { limits.write(into: &$0) }
        line.object("rate") { rate.write(into: &$0) }
        if !unconfirmedEnds.isEmpty {
            line.array("believed") { array in
                for entry in unconfirmedEnds {
                    array.object {
                        $0.field("grant", entry.grant.description)
                        $0.field("at", entry.at.milliseconds)
                    }
                }
            }
        }
        if let lastWave {
            line.field("unended_wave_at", lastWave.lastRefusalAt.milliseconds)
            line.field("wave_recoveries", lastWave.recoveries)
        }
        if let provenSuccessAt { line.field("proven_success_at", provenSuccessAt.milliseconds) }
        if provenSecretFingerprint != .none {
            line.field("proven_client_secret", Int64(provenSecretFingerprint.rawValue))
        }
        if let outageEndedAt { line.field("outage_ended_at", outageEndedAt.milliseconds) }
        if let failingSince { line.field("failing_since", failingSince.milliseconds) }
        if clientErrors != ConsecutiveClientErrors() { line.object("refusals") { clientErrors.write(into: &$0) } }
        if !failures.isEmpty { failures.write(into: &line) }
        return line.bytes
    }
}

/// Values within bounds that keep all arithmetic on them from overflowing: a damaged text must not end the process.
extension JSONValue {
    var timestamp: Timestamp? { integer(within: 0...1 << 53).map { Timestamp(milliseconds: $0) } }
    var instant: BootInstant? { integer(within: 0...1 << 53).map { BootInstant(milliseconds: $0) } }
    var boundedCount: Int? { integer(within: 0...1_000_000).map { Int($0) } }
    var grants: [Int64] { (array ?? []).compactMap { $0.string.flatMap { GrantID($0)?.rawValue } } }

    private func integer(within bounds: ClosedRange<Int64>) -> Int64? {
        integer.flatMap { bounds.contains($0) ? $0 : nil }
    }
}

extension JSONLine {
    /// Writes the ids of grants as operators see them.
    mutating func field(_ name: String, _ grants: [Int64]) {
        array(name) { array in
            for grant in grants { array.element(GrantID(rawValue: grant).description) }
        }
    }
}
