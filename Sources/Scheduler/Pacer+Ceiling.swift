package import Clocks

extension Pacer {
    /// What the endpoint said of the client: the part of a pacer that processes share.
    ///
    /// Its instants are of this boot; after a restart of the machine the caller drops what was stored and begins with
    /// `Limits()`. They do not depend on the pacer's own highest rate, so processes may run at different ones.
    package struct Limits: Hashable, Sendable {
        /// The last halving of the ceiling; nil when the endpoint never throttled.
        package var cut: Cut?
        /// Nothing is sent before, because the endpoint said so (`Retry-After`).
        package var pausedUntil: BootInstant?

        package init(cut: Cut? = nil, pausedUntil: BootInstant? = nil) {
            self.cut = cut
            self.pausedUntil = pausedUntil
        }

        /// Without what lies further ahead than it can, because the clock was set back since.
        func standing(at now: BootInstant) -> Limits {
            Limits(
                cut: cut.flatMap { $0.at.isBeyond(.zero, after: now) ? nil : $0 },
                pausedUntil: pausedUntil.flatMap { $0.isBeyond(Pacer.longestPause, after: now) ? nil : $0 }
            )
        }
    }

    /// A halving: the ceiling it led to, in requests a second, and when.
    package struct Cut: Hashable, Sendable {
        package let ceiling: Double
        package let at: BootInstant

        package init(ceiling: Double, at: BootInstant) {
            self.ceiling = ceiling
            self.at = at
        }
    }

    /// Answers to requests that were on their way together are one sign of throttling, not many: within this span of a
    /// cut there is no other.
    package static let cutInterval: Duration = .seconds(1)

    /// The ceiling never falls below this, in requests a second, unless the highest rate is lower still.
    package static let lowestCeiling = 0.5

    /// The part of the highest rate that the ceiling regains in each ``recoveryInterval`` without throttling.
    package static let recoveryShare = 0.05

    package static let recoveryInterval: Duration = .seconds(10)

    /// A `Retry-After` beyond this is not believed: an hour is a token's whole life.
    package static let longestPause: Duration = .seconds(60 * 60)

    /// The requests a second that are allowed now.
    ///
    /// It rises steadily from the last cut, or from the end of the pause that came with it, to the highest rate: half of
    /// a rate is regained in 100 s. It follows from the time alone, so there is nothing to store but the cuts.
    package func ceiling(at now: BootInstant) -> Double {
        let limits = limits.standing(at: now)
        guard let cut = limits.cut else { return maxRate }
        let recoveringFrom = max(cut.at, limits.pausedUntil ?? cut.at)
        let recovering = max((now - recoveringFrom) / Self.recoveryInterval, 0)
        let recovered = max(cut.ceiling, floor) + recovering * Self.recoveryShare * maxRate
        return min(recovered, maxRate)
    }

    /// Whether the endpoint asked for a pause that is not over.
    package func isPaused(at now: BootInstant) -> Bool {
        limits.standing(at: now).pausedUntil.map { now < $0 } ?? false
    }

    /// Takes note of a throttling answer: halves the ceiling, and pauses if the answer says for how long.
    ///
    /// - Parameters:
    ///   - retryAfter: the answer's `Retry-After`, if it has one.
    ///   - now: the instant of the answer.
    /// - Returns: whether the ceiling fell. The pause may have grown all the same: compare ``limits`` to know whether
    ///   there is something to store.
    package mutating func throttled(retryAfter: Duration?, at now: BootInstant) -> Bool {
        let before = ceiling(at: now)
        limits = limits.standing(at: now)
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
