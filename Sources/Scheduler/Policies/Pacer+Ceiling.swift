package import Base

extension Pacer {
    /// The limits that the endpoint set for the client, shared by all processes.
    ///
    /// Its instants belong to this boot; after a restart of the machine the caller drops the stored value and begins
    /// with `Limits()`. They do not depend on the pacer's own highest rate, so processes may run at different ones.
    package struct Limits: Hashable, Sendable {
        /// The last halving of the ceiling; `nil` if the endpoint never throttled.
        package var cut: Cut?
        /// The end of the pause that the endpoint asked for (`Retry-After`).
        package var pausedUntil: BootInstant?

        package init(cut: Cut? = nil, pausedUntil: BootInstant? = nil) {
            self.cut = cut
            self.pausedUntil = pausedUntil
        }

        /// Returns the limits without those that are further ahead than they can be, because the clock was set back
        /// since.
        func plausible(at now: BootInstant) -> Limits {
            Limits(
                cut: cut.flatMap { $0.at.isBeyond(.zero, after: now) ? nil : $0 },
                pausedUntil: pausedUntil.flatMap { $0.isBeyond(Pacer.longestPause, after: now) ? nil : $0 }
            )
        }
    }

    /// A halving of the ceiling: its result in requests per second, and its instant.
    package struct Cut: Hashable, Sendable {
        package let ceiling: Double
        package let at: BootInstant

        package init(ceiling: Double, at: BootInstant) {
            self.ceiling = ceiling
            self.at = at
        }
    }

    /// The shortest time between two halvings: answers to requests that were in flight together are one sign of
    /// throttling.
    package static let cutInterval: Duration = .seconds(1)

    /// The lowest ceiling, in requests per second, unless the highest rate is lower still.
    package static let lowestCeiling = 0.5

    /// The fraction of the highest rate that the ceiling regains in each ``recoveryInterval`` without throttling.
    package static let recoveryFraction = 0.05

    package static let recoveryInterval: Duration = .seconds(10)

    /// The longest `Retry-After` that is respected: an hour is a token's whole life.
    package static let longestPause: Duration = .seconds(60 * 60)

    /// Returns the requests per second that all workers together may send now.
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
        limits.plausible(at: now).pausedUntil.map { now < $0 } ?? false
    }

    /// Records a throttling answer: halves the ceiling, and pauses if the answer says for how long.
    ///
    /// - Parameters:
    ///   - retryAfter: the answer's `Retry-After`, if it has one.
    ///   - now: the instant of the answer.
    /// - Returns: `true` if the ceiling fell. The pause may have grown even if it did not: compare ``limits`` to see if
    ///   there is something to store.
    package mutating func throttled(retryAfter: Duration?, at now: BootInstant) -> Bool {
        let before = ceiling(at: now)
        limits = limits.plausible(at: now)
        if let retryAfter, retryAfter > .zero {
            let pausedUntil = now + min(retryAfter, Self.longestPause)
            limits.pausedUntil = max(limits.pausedUntil ?? pausedUntil, pausedUntil)
        }
        if let cut = limits.cut, now - cut.at < Self.cutInterval { return false }
        let halved = max(before / 2, floor)
        limits.cut = Cut(ceiling: halved, at: now)
        empty(at: now)
        return halved < before
    }

    private var floor: Double { min(Self.lowestCeiling, maxRate) }
}
