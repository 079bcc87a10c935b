package import Clocks

/// An instant of the clock that times leases: never the wall clock, which may be stepped.
///
/// On SQLite it is the boot clock of the one machine that the daemon and cron run on, with the boot's id as its epoch;
/// on a database server it is the server's clock. Instants of different epochs cannot be compared: a lease of another
/// epoch has ended.
package struct LeaseTime: Hashable, Sendable {
    package var epoch: String
    package var instant: BootInstant

    package init(epoch: String, instant: BootInstant) {
        self.epoch = epoch
        self.instant = instant
    }
}

/// The right of one worker to call Google for one grant, until an instant.
package struct Lease: Hashable, Sendable {
    package var owner: String
    /// The number of this claim, by which a late answer of an expired claim is recognised.
    package var claim: Int64
    package var epoch: String
    package var until: BootInstant
    /// `true` if the claim replaced an earlier one that was neither settled nor released, so that its answer may be
    /// lost.
    ///
    /// Only the claiming worker knows it; it is not stored with the lease.
    package var followsUnsettledClaim: Bool

    package init(
        owner: String,
        claim: Int64,
        epoch: String,
        until: BootInstant,
        followsUnsettledClaim: Bool = false
    ) {
        self.owner = owner
        self.claim = claim
        self.epoch = epoch
        self.until = until
        self.followsUnsettledClaim = followsUnsettledClaim
    }

    package func isLive(at time: LeaseTime) -> Bool {
        remaining(at: time) > .zero
    }

    /// Returns the remaining time of the lease.
    package func remaining(at time: LeaseTime) -> Duration {
        epoch == time.epoch ? max(.zero, until - time.instant) : .zero
    }
}
