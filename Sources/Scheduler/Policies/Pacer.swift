package import Base

/// Limits the requests of one client id to this worker's pace: its equal part of the ceiling, which falls when the
/// endpoint throttles.
///
/// It is a token bucket. The bucket belongs to one process; ``Limits``, which the endpoint sets for the client, are
/// shared through a store by all processes that use the client id.
package struct Pacer: Sendable {
    /// The bucket's capacity, in seconds of the pace: enough that a sender that wakes late loses no request, and so
    /// little that no second exceeds the pace by more than a fifth.
    private static let burst = 0.2

    /// The highest ceiling, in requests per second: that of an endpoint that does not throttle.
    package private(set) var maxRate: Double

    /// The number of workers that send requests of this client id; each has an equal part of the ceiling.
    package var workerCount = 1

    /// The limits that the endpoint set: see ``Limits``.
    package var limits: Limits

    private var tokens: Double
    private var refilledAt: BootInstant?

    /// Creates a pacer with a full bucket.
    ///
    /// - Parameter maxRate: requests per second, more than zero.
    package init(maxRate: Double) {
        Self.check(maxRate)
        self.maxRate = maxRate
        limits = Limits()
        tokens = Self.capacity(pace: maxRate)
    }

    /// Returns this worker's part of the ceiling, in requests per second.
    private func pace(at now: BootInstant) -> Double { ceiling(at: now) / Double(workerCount) }

    /// Returns the number of requests that may be sent now.
    package func available(at now: BootInstant) -> Int { isPaused(at: now) ? 0 : Int(tokens(at: now)) }

    /// Takes up to `wanted` requests out of the bucket; returns the number taken.
    package mutating func take(upTo wanted: Int, at now: BootInstant) -> Int {
        guard wanted > 0, !isPaused(at: now) else { return 0 }
        let available = tokens(at: now)
        let taken = available >= Double(wanted) ? wanted : Int(available)
        tokens = available - Double(taken)
        refilledAt = max(lastRefill(at: now) ?? now, now)
        return taken
    }

    /// Puts back requests that were taken and not sent.
    package mutating func refund(_ count: Int, at now: BootInstant) {
        tokens = min(tokens + Double(count), Self.capacity(pace: pace(at: now)))
    }

    /// Returns the wait until a request may be sent: zero if one may be sent now.
    package func nextAvailable(at now: BootInstant) -> Duration {
        let resume = max(now, limits.plausible(at: now).pausedUntil ?? now)
        let available = tokens(at: resume)
        guard available < 1 else { return resume - now }
        let seconds = (1 - available) / pace(at: resume)
        // Rounded up to a whole millisecond, the resolution of the clock, so that a caller finds its request after the
        // wait.
        return (resume - now) + .milliseconds((seconds * 1000).rounded(.up))
    }

    /// Sets another highest rate, as after a reload of the configuration.
    package mutating func changeMaxRate(_ rate: Double) {
        Self.check(rate)
        maxRate = rate
    }

    /// Empties the bucket, so that saved requests do not go to an endpoint that has just throttled.
    mutating func empty(at now: BootInstant) {
        tokens = 0
        refilledAt = max(lastRefill(at: now) ?? now, now)
    }

    /// Returns the instant of the last refill; `now` if it is in the future, because the clock was set back since.
    private func lastRefill(at now: BootInstant) -> BootInstant? {
        refilledAt.map { $0.isBeyond(.zero, after: now) ? now : $0 }
    }

    /// Returns the content of the bucket: it fills at the pace, but not during a pause.
    private func tokens(at now: BootInstant) -> Double {
        let pace = pace(at: now)
        let capacity = Self.capacity(pace: pace)
        guard let refilledAt = lastRefill(at: now) else { return min(tokens, capacity) }
        let filledFrom = max(refilledAt, limits.plausible(at: now).pausedUntil ?? refilledAt)
        guard now > filledFrom else { return min(tokens, capacity) }
        // A billionth compensates for rounding: n thousandths at a pace of 1000 / n are one request.
        return min(tokens + (now - filledFrom).inSeconds * pace + 1e-9, capacity)
    }

    private static func capacity(pace: Double) -> Double { max(1, pace * burst) }

    private static func check(_ rate: Double) {
        precondition(rate > 0 && rate.isFinite, "a rate of \(rate) requests a second")
    }
}
