package import Base

/// Stops the requests of a client while the client or the endpoint, and not a single grant, fails.
///
/// A value that is stored per client id and shared by all processes: each change is made in a transaction, so that of
/// two processes one gets the probe. Its instants belong to this boot. After a restart of the machine the caller drops
/// the stored value and begins with `Breaker()`.
///
/// An answer does not show if it belongs to the probe. While the breaker is open, an answer counts only if a probe is
/// in flight: late answers to requests from before the opening neither delay the next probe nor close the breaker.
///
///     var breaker = Breaker()
///     breaker.clientFault("invalid_client", at: now, jitter: 0.5)     // .opened(.clientFault("invalid_client"))
///     breaker.permits(at: now)                                        // .wait(until: now + .seconds(1))
///     breaker.beginProbe(at: now + .seconds(1), deadline: deadline)   // true, and false for every other process
///     breaker.succeeded()                                             // .closed
package struct Breaker: Hashable, Sendable {
    /// The reason why nothing is sent.
    package enum Reason: Hashable, Sendable {
        /// The endpoint refuses the client itself, with this error code.
        case clientFault(String)
        /// The endpoint does not answer, or not as an OAuth endpoint should.
        case endpointFailing

        package var code: String {
            switch self {
            case .clientFault(let code): code
            case .endpointFailing: "endpoint_failing"
            }
        }
    }

    /// The state, which decides what callers can send.
    package enum State: Hashable, Sendable {
        /// All requests are allowed. It counts the endpoint's failures in a row, and holds some of the affected grants.
        ///
        /// Next: `open`.
        case closed(consecutiveFailures: Int, grants: [Int64])

        /// Nothing is sent before the next probe. `probes` counts those that failed since it opened.
        ///
        /// Next: `probing`.
        case open(reason: Reason, since: BootInstant, nextProbe: BootInstant, probes: Int)

        /// One grant's request is unanswered. If its answer is lost, the next probe can begin at `nextProbe`.
        ///
        /// Next: `closed` after a good answer, `open` after a bad one, `probing` again if the answer is lost.
        case probing(reason: Reason, since: BootInstant, nextProbe: BootInstant, probes: Int)

        /// The begin of a state in which nothing but probes is sent.
        package struct Opening: Hashable, Sendable {
            package let reason: Reason
            package let since: BootInstant
        }

        package var opening: Opening? {
            switch self {
            case .closed: nil
            case .open(let reason, let since, _, _), .probing(let reason, let since, _, _):
                Opening(reason: reason, since: since)
            }
        }

        /// The word for the state in the stored health, in JSON and in metrics.
        package var name: String {
            switch self {
            case .closed: "closed"
            case .open: "open"
            case .probing: "probing"
            }
        }
    }

    /// A change that is logged and raises an alarm.
    enum Change: Hashable, Sendable {
        case opened(Reason)
        case closed
    }

    /// The permission to send requests.
    package enum Permission: Hashable, Sendable {
        /// All requests can be sent.
        case all
        /// One grant can be sent, after ``Breaker/beginProbe(at:deadline:)`` has agreed.
        case probeDue
        /// Nothing must be sent before that instant.
        case wait(until: BootInstant)
    }

    /// The number of endpoint failures in a row that opens the breaker, if they affected enough grants.
    static let failuresToOpen = 20

    /// The number of different grants that must be affected: a few faulty grants must not stop the others.
    static let grantsToOpen = 10

    /// The number of endpoint failures in a row that might be an outage, whose grants are retried at its end.
    static let failuresInOutage = 5

    /// The shortest duration of an outage, at whose end all failed grants are retried at once.
    ///
    /// Shorter series of failures might be random: at an error rate of a half, five in a row are common.
    static let minimumOutage: Duration = .seconds(10)

    /// The wait before the first probe, doubled by each failed one.
    static let firstProbeDelay: Duration = .seconds(1)

    /// The longest wait before a probe, including jitter.
    ///
    /// It is short because a probe might fail by chance just when the endpoint works again: three of them fit into the
    /// half minute within which all grants should then be fresh. A probe is one request, however many grants there are.
    static let maximumProbeDelay: Duration = .seconds(8)

    /// The longest time that a probe's answer is waited for.
    static let maximumProbe: Duration = .seconds(60)

    package internal(set) var state = State.closed(consecutiveFailures: 0, grants: [])

    var isOpen: Bool { if case .closed = state { false } else { true } }

    /// The reason why nothing is sent, while the breaker is open.
    package var reason: Reason? { state.opening?.reason }

    /// `true` while it is open because the endpoint refuses the client itself.
    var isOpenForClientFault: Bool {
        guard case .clientFault = reason else { return false }
        return true
    }

    /// `true` if the endpoint has failed for so long that grants are in back-off because of it and not by chance.
    var endpointIsFailing: Bool {
        switch state {
        case .closed(let failures, _): failures >= Self.failuresInOutage
        case .open(let reason, _, _, _), .probing(let reason, _, _, _): reason == .endpointFailing
        }
    }

    /// `true` if the endpoint's last answer, or the reason to stop, was a failure of the endpoint.
    var hasEndpointFailures: Bool {
        switch state {
        case .closed(let failures, _): failures > 0
        case .open(let reason, _, _, _), .probing(let reason, _, _, _): reason == .endpointFailing
        }
    }

    package func permits(at now: BootInstant) -> Permission {
        switch state {
        case .closed: .all
        case .open(_, _, let nextProbe, _): permits(at: now, after: nextProbe, within: Self.maximumProbeDelay)
        case .probing(_, _, let nextProbe, _): permits(at: now, after: nextProbe, within: Self.maximumProbe)
        }
    }

    private func permits(at now: BootInstant, after nextProbe: BootInstant, within span: Duration) -> Permission {
        if now >= nextProbe || nextProbe.isBeyond(span, after: now) { return .probeDue }
        return .wait(until: nextProbe)
    }
}

extension Breaker {
    /// Asks to send one grant as the probe.
    ///
    /// No other process can begin a probe before the answer is in or the deadline has passed.
    ///
    /// - Parameters:
    ///   - now: the instant of asking.
    ///   - deadline: the time within which the request is answered or given up, ``maximumProbe`` at most.
    /// - Returns: `true` if the caller can send. That includes a closed breaker, for which no probe begins.
    mutating func beginProbe(at now: BootInstant, deadline: Duration) -> Bool {
        switch state {
        case .closed: return true
        case .open(let reason, let since, _, let probes), .probing(let reason, let since, _, let probes):
            guard permits(at: now) == .probeDue else { return false }
            let nextProbe = now + min(deadline, Self.maximumProbe)
            state = .probing(reason: reason, since: since, nextProbe: nextProbe, probes: probes)
            return true
        }
    }

    /// Records an answer that shows that client and endpoint work, even if it ends the grant.
    mutating func succeeded() -> Change? {
        switch state {
        case .closed:
            self = Breaker()
            return nil
        case .open: return nil
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
    ///   - jitter: a random number from 0 up to but not including 1, for the next probe.
    /// - Returns: the opening, if this failure reaches the limit.
    mutating func endpointFailed(grant: Int64, at now: BootInstant, jitter: Double) -> Change? {
        switch state {
        case .closed(let failuresBefore, var grants):
            let failures = failuresBefore + 1
            if grants.count < Self.grantsToOpen, !grants.contains(grant) { grants.append(grant) }
            guard failures >= Self.failuresToOpen, grants.count >= Self.grantsToOpen else {
                state = .closed(consecutiveFailures: failures, grants: grants)
                return nil
            }
            return open(for: .endpointFailing, at: now, jitter: jitter)
        case .open: return nil
        case .probing(let reason, let since, _, let probes):
            // A missing answer says nothing about a client that was refused, so the reason stays.
            probeFailed(reason: reason, since: since, probes: probes, at: now, jitter: jitter)
            return nil
        }
    }

    /// Records that the endpoint refused the client itself.
    ///
    /// - Parameters:
    ///   - code: the endpoint's error code.
    ///   - now: the instant of the answer.
    ///   - jitter: a random number from 0 up to but not including 1, for the next probe.
    /// - Returns: the opening, or the new reason if a probe found another fault than the one that opened it.
    mutating func clientFault(_ code: String, at now: BootInstant, jitter: Double) -> Change? {
        let fault = Reason.clientFault(code)
        switch state {
        case .closed: return open(for: fault, at: now, jitter: jitter)
        case .open: return nil
        case .probing(let reason, let since, _, let probes):
            probeFailed(reason: fault, since: since, probes: probes, at: now, jitter: jitter)
            return fault == reason ? nil : .opened(fault)
        }
    }

    /// Records an answer to a probe that says nothing about the client: another grant is tried soon.
    mutating func probeWasInconclusive(at now: BootInstant) {
        guard case .probing(let reason, let since, _, let probes) = state else { return }
        state = .open(reason: reason, since: since, nextProbe: now + Self.firstProbeDelay, probes: probes)
    }

    private mutating func open(for reason: Reason, at now: BootInstant, jitter: Double) -> Change {
        let nextProbe = now + Self.probeDelay(probes: 0, jitter: jitter)
        state = .open(reason: reason, since: now, nextProbe: nextProbe, probes: 0)
        return .opened(reason)
    }

    private mutating func probeFailed(
        reason: Reason,
        since: BootInstant,
        probes: Int,
        at now: BootInstant,
        jitter: Double
    ) {
        let nextProbe = now + Self.probeDelay(probes: probes + 1, jitter: jitter)
        state = .open(reason: reason, since: since, nextProbe: nextProbe, probes: probes + 1)
    }

    /// Returns the wait for the next probe after a number of failed ones, plus or minus a fifth.
    private static func probeDelay(probes: Int, jitter: Double) -> Duration {
        // Thirty doublings of the first wait are far beyond the longest and cannot overflow.
        let base = min(firstProbeDelay * (1 << min(probes, 30)), maximumProbeDelay)
        return min(base * (0.8 + 0.4 * jitter), maximumProbeDelay)
    }
}

/// The stored form, which ``ClientHealth/stored`` holds.
extension Breaker {
    init(_ body: JSONValue?) {
        self.init()
        guard let body, let word = body["state"]?.string else { return }
        let reason: Reason = if let code = body["code"]?.string { .clientFault(code) } else { .endpointFailing }
        let since = body["since"]?.instant ?? BootInstant(milliseconds: 0)
        let nextProbe = body["next_probe"]?.instant ?? BootInstant(milliseconds: 0)
        let probes = body["probes"]?.boundedCount ?? 0
        state =
            switch word {
            case "open": .open(reason: reason, since: since, nextProbe: nextProbe, probes: probes)
            case "probing": .probing(reason: reason, since: since, nextProbe: nextProbe, probes: probes)
            default:
                .closed(consecutiveFailures: body["failures"]?.boundedCount ?? 0, grants: body["grants"]?.grants ?? [])
            }
    }

    func write(into line: inout JSONLine) {
        line.field("state", state.name)
        switch state {
        case .closed(let failures, let grants):
            line.field("failures", failures)
            line.field("grants", grants)
        case .open(let reason, let since, let nextProbe, let probes),
            .probing(let reason, let since, let nextProbe, let probes):
            if case .clientFault(let code) = reason { line.field("code", code) }
            line.field("since", since.milliseconds)
            line.field("next_probe", nextProbe.milliseconds)
            line.field("probes", probes)
        }
    }
}

extension BootInstant {
    /// The largest difference between the readings of one clock in several processes.
    private static let tolerance: Duration = .seconds(10)

    /// `true` if an instant that was at most `span` ahead when it was stored is further ahead now.
    ///
    /// Then the clock has been set back since, as a database server's clock can be, and the instant is treated as past:
    /// otherwise it would hold for as long as the step was.
    func isBeyond(_ span: Duration, after now: BootInstant) -> Bool { self - now > span + Self.tolerance }
}
