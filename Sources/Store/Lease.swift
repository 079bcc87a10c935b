package import Clocks

/// A point of the clock that leases go by: never the wall clock, which may be stepped.
///
/// On SQLite it is the boot clock of the one machine that the daemon and cron run on, named by the boot's id; on a database
/// server it is the server's clock. Points of different epochs cannot be compared: a lease of another epoch has ended.
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
    /// Names this one claim: an answer of a claim that has lapsed, and been followed by another, can be told by it.
    package var claim: Int64
    package var epoch: String
    package var until: BootInstant
    /// `true` if the claim found the lease of an earlier one that was neither settled nor released: its answer may be lost.
    ///
    /// Known to the claiming worker alone; it is not stored with the lease.
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

    /// How long the lease has to run.
    package func remaining(at time: LeaseTime) -> Duration {
        epoch == time.epoch ? max(.zero, until - time.instant) : .zero
    }
}
