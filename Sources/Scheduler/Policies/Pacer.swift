package import Base

/// Limits the requests of one client id to this worker's pace: its equal part of the ceiling, which falls when the
/// endpoint throttles.
///
/// It is a token bucket. The bucket belongs to one process. ``Limits``, which the endpoint sets for the client, are
/// shared through a store by all processes that use the client id.
///
///     var pacer = Pacer(maxRate: 100)
///     pacer.take(upTo: 50, at: now)                         // 20, the requests of a fifth of a second
///     pacer.throttled(retryAfter: .seconds(30), at: now)    // true: the ceiling is 50 now
///     pacer.nextAvailable(at: now)                          // 30 s for the pause, and 20 ms for the first request
package struct Pacer: Sendable {
    /// The bucket's capacity, in seconds of the pace, beside ``claimTime``: enough that a sender that wakes late loses
    /// no request, and so little that no second exceeds the pace by more than a fifth.
    private static let burst = 0.2
    /// The longest ``claimTime`` that counts.
    private static let maximumClaimTime: Duration = .seconds(1)

    /// The highest ceiling, in requests per second: that of an endpoint that does not throttle.
    private(set) var maxRate: Double

    /// The number of workers that send requests of this client id. Each has an equal part of the ceiling.
    var workerCount = 1

    /// The time that the store takes for a claim.
    ///
    /// Requests are taken before each claim, one claim after the other. What the pace gives during a claim is for the
    /// next one. A bucket that is full before a claim ends would lose it: a store that takes 400 ms for a claim would
    /// halve the rate.
    var claimTime: Duration = .zero

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
        tokens = Self.capacity(pace: maxRate, claimTime: .zero)
    }

    /// Returns this worker's part of the ceiling, in requests per second.
    private func pace(at now: BootInstant) -> Double { ceiling(at: now) / Double(workerCount) }

    /// Returns the number of requests that can be sent now.
    func available(at now: BootInstant) -> Int { isPaused(at: now) ? 0 : max(0, Int(tokens(at: now))) }

    /// Takes up to `wanted` requests out of the bucket, and returns the number taken.
    mutating func take(upTo wanted: Int, at now: BootInstant) -> Int {
        guard wanted > 0, !isPaused(at: now) else { return 0 }
        let available = tokens(at: now)
        let taken = available >= Double(wanted) ? wanted : max(0, Int(available))
        tokens = available - Double(taken)
        refilledAt = max(lastRefill(at: now) ?? now, now)
        return taken
    }

    /// Puts back requests that were taken and not sent.
    mutating func refund(_ count: Int, at now: BootInstant) {
        tokens = min(tokens + Double(count), Self.capacity(pace: pace(at: now), claimTime: claimTime))
    }

    /// Takes requests that were sent beyond those that the bucket gave. It is less than empty until the pace has made up
    /// for them.
    mutating func charge(_ count: Int, at now: BootInstant) {
        tokens = tokens(at: now) - Double(count)
        refilledAt = max(lastRefill(at: now) ?? now, now)
    }

    /// Returns the wait until a request can be sent: zero if one can be sent now.
    func nextAvailable(at now: BootInstant) -> Duration {
        let resume = max(now, limits.plausible(at: now).pausedUntil ?? now)
        let available = tokens(at: resume)
        guard available < 1 else { return resume - now }
        let seconds = (1 - available) / pace(at: resume)
        // Rounded up to a whole millisecond, the resolution of the clock, so that a caller finds its request after the
        // wait.
        return (resume - now) + .milliseconds((seconds * 1000).rounded(.up))
    }

    /// Sets another highest rate, as after a reload of the configuration.
    mutating func changeMaxRate(_ rate: Double) {
        Self.check(rate)
        maxRate = rate
    }

    /// Empties the bucket, so that saved requests do not go to an endpoint that has just throttled.
    mutating func empty(at now: BootInstant) {
        tokens = 0
        refilledAt = max(lastRefill(at: now) ?? now, now)
    }

    /// Returns the instant of the last refill, or `now` if it is in the future, because the clock was set back since.
    private func lastRefill(at now: BootInstant) -> BootInstant? {
        guard let refilledAt else { return nil }
        return refilledAt.isBeyond(.zero, after: now) ? now : refilledAt
    }

    /// Returns the content of the bucket: it fills at the pace, but not during a pause.
    private func tokens(at now: BootInstant) -> Double {
        let pace = pace(at: now)
        let capacity = Self.capacity(pace: pace, claimTime: claimTime)
        guard let refilledAt = lastRefill(at: now) else { return min(tokens, capacity) }
        let filledFrom = max(refilledAt, limits.plausible(at: now).pausedUntil ?? refilledAt)
        guard now > filledFrom else { return min(tokens, capacity) }
        // A billionth compensates for rounding: n thousandths at a pace of 1000 / n are one request.
        return min(tokens + (now - filledFrom).inSeconds * pace + 1e-9, capacity)
    }

    private static func capacity(pace: Double, claimTime: Duration) -> Double {
        max(1, pace * (burst + min(claimTime, maximumClaimTime).inSeconds))
    }

    private static func check(_ rate: Double) {
        precondition(rate > 0 && rate.isFinite, "a rate of \(rate) requests a second")
    }
}

extension Pacer {
    /// The limits that the endpoint set for the client, shared by all processes.
    ///
    /// Its instants belong to this boot. After a restart of the machine the caller drops the stored value and begins
    /// with `Limits()`. They do not depend on the pacer's own highest rate, so processes can run at different ones.
    package struct Limits: Hashable, Sendable {
        /// The last halving of the ceiling, or `nil` if the endpoint never throttled.
        var cut: Cut?
        /// The end of the pause that the endpoint asked for (`Retry-After`).
        package var pausedUntil: BootInstant?

        /// Returns the limits without those that are further ahead than they can be, because the clock was set back
        /// since.
        func plausible(at now: BootInstant) -> Limits {
            var limits = self
            if let cut, cut.at.isBeyond(.zero, after: now) { limits.cut = nil }
            if let pausedUntil, pausedUntil.isBeyond(Pacer.maximumPause, after: now) { limits.pausedUntil = nil }
            return limits
        }
    }

    /// A halving of the ceiling: its result in requests per second, and its instant.
    struct Cut: Hashable, Sendable {
        let ceiling: Double
        let at: BootInstant
    }

    /// The shortest time between two halvings: answers to requests that were in flight together are one sign of
    /// throttling.
    static let cutInterval: Duration = .seconds(1)

    /// The lowest ceiling, in requests per second, unless the highest rate is lower still.
    static let minimumCeiling = 0.5

    /// The fraction of the highest rate that the ceiling regains in each ``recoveryInterval`` without throttling.
    static let recoveryFraction = 0.05

    static let recoveryInterval: Duration = .seconds(10)

    /// The longest `Retry-After` that is respected: an hour is a token's whole life.
    static let maximumPause: Duration = .seconds(60 * 60)

    /// Returns the requests per second that all workers together can send now.
    ///
    /// It rises linearly from the last halving, or from the end of the pause that came with it, to the highest rate:
    /// half of a rate is regained in 100 s. It depends only on the time, so only the halvings have to be stored.
    package func ceiling(at now: BootInstant) -> Double {
        let limits = limits.plausible(at: now)
        guard let cut = limits.cut else { return maxRate }
        let recoveringFrom = max(cut.at, limits.pausedUntil ?? cut.at)
        let recovering = max((now - recoveringFrom) / Self.recoveryInterval, 0)
        let recovered = max(cut.ceiling, floor) + recovering * Self.recoveryFraction * maxRate
        return min(recovered, maxRate)
    }

    /// `true` while a pause that the endpoint asked for lasts.
    package func isPaused(at now: BootInstant) -> Bool {
        guard let pausedUntil = limits.plausible(at: now).pausedUntil else { return false }
        return now < pausedUntil
    }

    /// Records a throttling answer: halves the ceiling, and pauses if the answer says for how long.
    ///
    /// - Parameters:
    ///   - retryAfter: the answer's `Retry-After`, if it has one.
    ///   - now: the instant of the answer.
    /// - Returns: `true` if the ceiling fell. The pause might have grown even if it did not: compare ``limits`` to see
    ///   if there is something to store.
    mutating func throttled(retryAfter: Duration?, at now: BootInstant) -> Bool {
        let before = ceiling(at: now)
        limits = limits.plausible(at: now)
        if let retryAfter, retryAfter > .zero {
            let pausedUntil = now + min(retryAfter, Self.maximumPause)
            limits.pausedUntil = max(limits.pausedUntil ?? pausedUntil, pausedUntil)
        }
        if let cut = limits.cut, now - cut.at < Self.cutInterval { return false }
        let halved = max(before / 2, floor)
        limits.cut = Cut(ceiling: halved, at: now)
        empty(at: now)
        return halved < before
    }

    private var floor: Double { min(Self.minimumCeiling, maxRate) }
}

/// The stored form.
///
/// See ``ClientHealth/stored``.
extension Pacer.Limits {
    init(_ body: JSONValue?) {
        self.init()
        if let perThousandSeconds = body?["ceiling_per_1000_s"]?.integer, let at = body?["cut_at"]?.instant {
            cut = Pacer.Cut(ceiling: Double(perThousandSeconds) / 1000, at: at)
        }
        pausedUntil = body?["paused_until"]?.instant
    }

    func write(into line: inout JSONLine) {
        if let cut {
            line.field("ceiling_per_1000_s", Int64((cut.ceiling * 1000).rounded()))
            line.field("cut_at", cut.at.milliseconds)
        }
        if let pausedUntil { line.field("paused_until", pausedUntil.milliseconds) }
    }
}
