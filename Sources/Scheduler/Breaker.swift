package import Clocks

/// Stops calling for a whole client when what fails is the client or the endpoint and not a grant.
///
/// A value that is kept in a store per client id and shared by all processes: each change is made inside a transaction,
/// so that of two processes one gets the probe. Its instants are of this boot; after a restart of the machine the
/// caller drops what was stored and begins with `Breaker()`.
///
/// Answers carry no mark that says which one is the probe's. While the breaker is open, an answer counts only if a probe
/// is under way: the late answers of requests from before it opened neither push the next probe away nor close it.
package struct Breaker: Hashable, Sendable {
    /// Why nothing is sent.
    package enum Reason: Hashable, Sendable {
        /// The endpoint refuses the client itself, with this error code.
        case clientFault(String)
        /// The endpoint does not answer, or not as an endpoint should.
        case endpointFailing
    }

    /// What callers may send.
    package enum State: Hashable, Sendable {
        /// All goes; counts the endpoint's failures in a row and some of the grants that met them.
        ///
        /// Next: `open`.
        case closed(consecutiveFailures: Int, grants: [Int64])

        /// Nothing goes before the next probe; `probes` have failed since it opened.
        ///
        /// Next: `probing`.
        case open(reason: Reason, since: BootInstant, nextProbe: BootInstant, probes: Int)

        /// One grant's request is on its way; if its answer is lost, the next probe may begin at that instant.
        ///
        /// Next: `closed` by a good answer, `open` by a bad one, `probing` anew when the answer is lost.
        case probing(reason: Reason, since: BootInstant, nextProbe: BootInstant, probes: Int)
    }

    /// A change that people and logs should hear of.
    package enum Change: Hashable, Sendable {
        case opened(Reason)
        case closed
    }

    /// The answer to whether something may be sent.
    package enum Permission: Hashable, Sendable {
        /// Send at will.
        case all
        /// Send one grant, after ``Breaker/beginProbe(at:deadline:)`` has agreed.
        case probeDue
        /// Send nothing before that instant.
        case wait(until: BootInstant)
    }

    /// So many endpoint failures in a row open the breaker, if they met enough grants.
    package static let failuresToOpen = 20

    /// So many different grants must have met them: a few odd grants must not stop the others.
    package static let grantsToOpen = 10

    /// So many endpoint failures in a row may be an outage: when they end, what failed meanwhile may be worth another try.
    package static let failuresThatMatter = 5

    /// Failures in a row that end sooner are chance: at an error rate of a half five of them are nothing special.
    package static let shortestOutage: Duration = .seconds(10)

    /// The shortest time between two ends of outages that cause retries at once.
    package static let pauseBetweenOutages: Duration = .seconds(30)

    /// The wait for the first probe, doubled by each that fails.
    package static let firstProbeDelay: Duration = .seconds(1)

    /// The longest wait for a probe, jitter included.
    ///
    /// Short, because a probe may meet a failure of its own just when the endpoint works again: three of them fit into
    /// the half minute within which all grants should be fresh then. It is one request, whatever the number of grants.
    package static let longestProbeDelay: Duration = .seconds(8)

    /// The longest that an answer to a probe is waited for.
    package static let longestProbe: Duration = .seconds(60)

    package internal(set) var state: State

    package init() {
        self.init(state: .closed(consecutiveFailures: 0, grants: []))
    }

    /// A breaker as it was stored.
    package init(state: State) {
        self.state = state
    }

    package var isOpen: Bool { reason != nil }

    /// Why nothing is sent, while the breaker is open.
    package var reason: Reason? {
        switch state {
        case .closed: nil
        case .open(let reason, _, _, _), .probing(let reason, _, _, _): reason
        }
    }

    /// Whether the endpoint has failed for so long that grants lie in back-off because of it and not by chance.
    package var endpointIsFailing: Bool {
        switch state {
        case .closed(let failures, _): failures >= Self.failuresThatMatter
        case .open(let reason, _, _, _), .probing(let reason, _, _, _): reason == .endpointFailing
        }
    }

    /// `true` if the endpoint's last answer, or the reason to stop, was a failure of the endpoint.
    package var hasEndpointFailures: Bool {
        switch state {
        case .closed(let failures, _): failures > 0
        case .open(let reason, _, _, _), .probing(let reason, _, _, _): reason == .endpointFailing
        }
    }

    package func permits(at now: BootInstant) -> Permission {
        switch state {
        case .closed: .all
        case .open(_, _, let nextProbe, _):
            permits(at: now, after: nextProbe, within: Self.longestProbeDelay)
        case .probing(_, _, let nextProbe, _):
            permits(at: now, after: nextProbe, within: Self.longestProbe)
        }
    }

    private func permits(at now: BootInstant, after nextProbe: BootInstant, within span: Duration) -> Permission {
        now >= nextProbe || nextProbe.isBeyond(span, after: now) ? .probeDue : .wait(until: nextProbe)
    }
}
