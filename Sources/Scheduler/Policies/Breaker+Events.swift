package import Base

extension Breaker {
    /// Asks to send one grant as the probe.
    ///
    /// No other process can begin a probe before the answer is in or the deadline has passed.
    ///
    /// - Parameters:
    ///   - now: the instant of asking.
    ///   - deadline: the time within which the request is answered or given up; ``longestProbe`` at most.
    /// - Returns: `true` if the caller may send; also `true`, without a probe, if the breaker is closed.
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

    /// Records an answer that shows that client and endpoint work, even if it ends the grant.
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

    /// Records that the endpoint gave no answer, a 5xx, or an answer in an unknown form.
    ///
    /// - Parameters:
    ///   - grant: the grant of the request.
    ///   - now: the instant of the failure.
    ///   - unit: a random number from 0 up to but not including 1, for the next probe.
    /// - Returns: the opening, if this failure reaches the limit.
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
            // A missing answer says nothing about a client that was refused, so the reason stays.
            probeFailed(reason: reason, since: since, probes: probes, at: now, unit: unit)
            return nil
        }
    }

    /// Records that the endpoint refused the client itself.
    ///
    /// - Parameters:
    ///   - code: the endpoint's error code.
    ///   - now: the instant of the answer.
    ///   - unit: a random number from 0 up to but not including 1, for the next probe.
    /// - Returns: the opening, or the new reason if a probe found another fault than the one that opened it.
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

    /// Records an answer to a probe that says nothing about the client: another grant is tried soon.
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

    /// Returns the wait for the next probe after a number of failed ones, plus or minus a fifth.
    private static func probeDelay(probes: Int, unit: Double) -> Duration {
        // Thirty doublings of the first wait are far beyond the longest and cannot overflow.
        let base = min(firstProbeDelay * (1 << min(probes, 30)), longestProbeDelay)
        return min(base * (0.8 + 0.4 * unit), longestProbeDelay)
    }
}
