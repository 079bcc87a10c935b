import Base

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
