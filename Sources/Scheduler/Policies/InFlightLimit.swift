import Base

/// The number of refreshes worth having in flight: as many as the rate needs in the time that one refresh takes.
///
/// More would not be stored sooner, but would cost memory and connections, each of which begins with a handshake.
///
/// A refresh takes as long as its claim, the endpoint's answer, the rest of the commit before it, and its own commit.
/// For example, a PostgreSQL server that waits 200 ms for its standby and an endpoint that answers in 10 ms make 610
/// ms. At 500 refreshes per second 305 are then in flight on average.
struct InFlightLimit: Sendable {
    /// The number that is always allowed: with fewer, a burst of a few grants would be sent in several rounds.
    static let minimum = 64
    /// The allowance for latencies above the first quartile.
    private static let allowance = 2.0

    /// The limit is never higher.
    let maximum: Int
    private(set) var answers = RecentLatencies()
    private(set) var claims = RecentLatencies()
    private(set) var commits = RecentLatencies()

    init(maximum: Int) { self.maximum = maximum }

    /// Records the latency of a successful refresh.
    ///
    /// Refusals do not count: one that throttles is often sent at once, before the endpoint has done any work.
    mutating func recordAnswer(_ latency: Duration, at now: BootInstant) { answers.record(latency, at: now) }

    /// Records the time that the store took for a claim.
    mutating func recordClaim(_ latency: Duration, at now: BootInstant) { claims.record(latency, at: now) }

    /// Records the time that the store took for a batch of results.
    mutating func recordCommit(_ latency: Duration, at now: BootInstant) { commits.record(latency, at: now) }

    /// Returns the limit at a rate in requests per second.
    func limit(at rate: Double) -> Int {
        let timeOfOne = claims.firstQuartile + answers.firstQuartile + commits.firstQuartile * 2
        let wanted = (rate * timeOfOne.inSeconds * Self.allowance).rounded(.up)
        return Int(min(max(wanted, Double(Self.minimum)), Double(maximum)))
    }
}
