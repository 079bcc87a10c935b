package import Clocks

extension Breaker {
    /// Asks to send one grant as the probe.
    ///
    /// No other probe begins, in whichever process, before the answer is in or the deadline has passed.
    ///
    /// - Parameters:
    ///   - now: the instant of asking.
    ///   - deadline: the span within which the request has an answer or is given up; ``longestProbe`` at most.
    /// - Returns: whether the caller may send; true without a probe when the breaker is closed.
    package mutating func beginProbe(at now: BootInstant, deadline: Duration) -> Bool {
        switch state {
        case .closed:
            return true
        case .open(let reason, let since, _, let probes), .probing(let reason, let since, _, let probes):
            guard permits(at: now) == .probeDue else { return false }
            let nextProbe = now + min(deadline, Self.longestProbe)
            state = .probing(reason: reason, since: since, nextProbe: nextProbe, probes: probes)
            return true
        }
    }

    /// Takes note of an answer that shows client and endpoint at work, even if it ends the grant.
    package mutating func succeeded() -> Change? {
        switch state {
        case .closed:
            self = Breaker()
            return nil
        case .open:
            return nil
        case .probing:
            self = Breaker()
            return .closed
        }
    }

    /// Takes note that the endpoint gave no answer, a 5xx, or something that is no answer.
    ///
    /// - Parameters:
    ///   - grant: the grant that met it.
    ///   - now: the instant of the failure.
    ///   - unit: a random number from 0 up to but not including 1, for the next probe.
    /// - Returns: the opening, when this failure was the one too many.
    package mutating func endpointFailed(grant: Int64, at now: BootInstant, unit: Double) -> Change? {
        switch state {
        case .closed(let failuresBefore, var grants):
            let failures = failuresBefore + 1
            if grants.count < Self.grantsToOpen, !grants.contains(grant) {
                grants.append(grant)
            }
            guard failures >= Self.failuresToOpen, grants.count >= Self.grantsToOpen else {
                state = .closed(consecutiveFailures: failures, grants: grants)
                return nil
            }
            return open(for: .endpointFailing, at: now, unit: unit)
        case .open:
            return nil
        case .probing(let reason, let since, _, let probes):
            // Silence says nothing about a client that was refused, so the reason stands.
            probeFailed(reason: reason, since: since, probes: probes, at: now, unit: unit)
            return nil
        }
    }

    /// Takes note that the endpoint refused the client itself.
    ///
    /// - Parameters:
    ///   - code: the endpoint's error code.
    ///   - now: the instant of the answer.
    ///   - unit: a random number from 0 up to but not including 1, for the next probe.
    /// - Returns: the opening, or the new reason when a probe found another fault than the one that opened it.
    package mutating func clientFault(_ code: String, at now: BootInstant, unit: Double) -> Change? {
        let fault = Reason.clientFault(code)
        switch state {
        case .closed:
            return open(for: fault, at: now, unit: unit)
        case .open:
            return nil
        case .probing(let reason, let since, _, let probes):
            probeFailed(reason: fault, since: since, probes: probes, at: now, unit: unit)
            return fault == reason ? nil : .opened(fault)
        }
    }

    /// Takes note of a probe's answer that tells nothing about the client: another grant is asked soon.
    package mutating func probeWasInconclusive(at now: BootInstant) {
        guard case .probing(let reason, let since, _, let probes) = state else { return }
        state = .open(reason: reason, since: since, nextProbe: now + Self.firstProbeDelay, probes: probes)
    }

    private mutating func open(for reason: Reason, at now: BootInstant, unit: Double) -> Change {
        let nextProbe = now + Self.probeDelay(probes: 0, unit: unit)
        state = .open(reason: reason, since: now, nextProbe: nextProbe, probes: 0)
        return .opened(reason)
    }

    private mutating func probeFailed(
        reason: Reason,
        since: BootInstant,
        probes: Int,
        at now: BootInstant,
        unit: Double
    ) {
        let nextProbe = now + Self.probeDelay(probes: probes + 1, unit: unit)
        state = .open(reason: reason, since: since, nextProbe: nextProbe, probes: probes + 1)
    }

    /// The wait for the next probe after so many that failed, a fifth more or less.
    private static func probeDelay(probes: Int, unit: Double) -> Duration {
        // Thirty doublings of the first wait are far beyond the longest and cannot overflow.
        let base = min(firstProbeDelay * (1 << min(probes, 30)), longestProbeDelay)
        return min(base * (0.8 + 0.4 * unit), longestProbeDelay)
    }
}
