package import Clocks

/// How many requests may be sent now for one client id: a token bucket under a ceiling that gives way when throttled.
///
/// The bucket belongs to one process; what the endpoint said of the client, ``Limits``, is meant to be shared through a
/// store by all processes that use the client id.
package struct Pacer: Sendable {
    /// The bucket holds what this part of a second lets through: enough that a late turn of the sender loses nothing,
    /// and little enough that no second sees more than a fifth above the rate.
    private static let burst = 0.2

    /// The most requests a second, whatever the endpoint bears.
    package private(set) var maxRate: Double

    /// Among how many workers the rate is divided: each has an equal part of the ceiling.
    package var sharers = 1

    /// What the endpoint said: see ``Limits``.
    package var limits: Limits

    private var tokens: Double
    private var refilledAt: BootInstant?

    /// A pacer with a full bucket.
    ///
    /// - Parameter maxRate: requests a second, more than zero.
    package init(maxRate: Double) {
        Self.check(maxRate)
        self.maxRate = maxRate
        limits = Limits()
        tokens = Self.capacity(rate: maxRate)
    }

    /// What of the ceiling is this worker's.
    private func rate(at now: BootInstant) -> Double { ceiling(at: now) / Double(sharers) }

    /// Takes up to that many requests out of the bucket, and says how many there were.
    package mutating func take(upTo wanted: Int, at now: BootInstant) -> Int {
        guard wanted > 0, !isPaused(at: now) else { return 0 }
        let available = tokens(at: now)
        let taken = available >= Double(wanted) ? wanted : Int(available)
        tokens = available - Double(taken)
        refilledAt = max(lastRefill(at: now) ?? now, now)
        return taken
    }

    /// Puts back what was taken for requests that were not sent.
    package mutating func putBack(_ count: Int, at now: BootInstant) {
        tokens = min(tokens + Double(count), Self.capacity(rate: rate(at: now)))
    }

    /// How long until a request may be sent: zero when one may be sent now.
    package func nextAvailable(at now: BootInstant) -> Duration {
        let resume = max(now, limits.standing(at: now).pausedUntil ?? now)
        let available = tokens(at: resume)
        guard available < 1 else { return resume - now }
        let seconds = (1 - available) / rate(at: resume)
        // Up to the whole millisecond, the grain of the clock: a caller that waits so long finds its request.
        return (resume - now) + .milliseconds((seconds * 1000).rounded(.up))
    }

    /// Takes another highest rate, as when the configuration is read again.
    package mutating func changeMaxRate(_ rate: Double) {
        Self.check(rate)
        maxRate = rate
    }

    /// Empties the bucket, so that nothing saved up earlier goes to an endpoint that has just said it is too much.
    mutating func empty(at now: BootInstant) {
        tokens = 0
        refilledAt = max(lastRefill(at: now) ?? now, now)
    }

    /// When the bucket was filled last; now, where a clock that has been set back since says that it is to come.
    private func lastRefill(at now: BootInstant) -> BootInstant? {
        refilledAt.map { $0.isBeyond(.zero, after: now) ? now : $0 }
    }

    /// What is in the bucket: it fills at the ceiling's rate, but not during a pause.
    private func tokens(at now: BootInstant) -> Double {
        let rate = rate(at: now)
        let capacity = Self.capacity(rate: rate)
        guard let refilledAt = lastRefill(at: now) else { return min(tokens, capacity) }
        let filledFrom = max(refilledAt, limits.standing(at: now).pausedUntil ?? refilledAt)
        guard now > filledFrom else { return min(tokens, capacity) }
        // A billionth makes up for rounding: n thousandths at a rate of 1000 / n are one request.
        return min(tokens + (now - filledFrom).inSeconds * rate + 1e-9, capacity)
    }

    private static func capacity(rate: Double) -> Double { max(1, rate * burst) }

    private static func check(_ rate: Double) {
        precondition(rate > 0 && rate.isFinite, "a rate of \(rate) requests a second")
    }
}
