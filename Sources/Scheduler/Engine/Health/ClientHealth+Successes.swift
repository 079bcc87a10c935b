import Base
import Storage

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
