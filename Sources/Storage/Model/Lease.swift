package import Base

/// The right of one worker to call Google for one grant, until an instant.
package struct Lease: Hashable, Sendable {
    var owner: String
    /// The number of this claim, by which a late answer of an expired claim is recognised.
    package var claim: Int64
    var epoch: String
    var until: BootInstant
    /// `true` if the claim replaced an earlier one that had neither a result nor a release, so that its answer might be
    /// lost. Only the claiming worker knows it, since it is not stored with the lease.
    package var followsUnfinishedClaim = false
    /// The version of the grant's row that the claim has read.
    ///
    /// Only the claiming worker knows it, for ``Store/storePlain(_:at:)`` and ``StoreTransaction/replace(_:by:)``. It
    /// says when the row was written, and not what it contains, so leases are equal whatever it is.
    var revision: Int64?

    /// The duration of a worker's claim, which is renewed after a third of it.
    package static let span: Duration = .seconds(30)

    /// The owner of a lease that outlives its request.
    static let noOwner = ""

    /// `true` if the lease outlives a request that ended without an answer: the server might still be working on it.
    package var isOfEndedRequest: Bool { owner == Self.noOwner }

    package func isLive(at time: LeaseTime) -> Bool { remaining(at: time) > .zero }

    /// `true` if another worker can claim the grant. Without `takesOver` the lease of an owner is free only if it is of
    /// an earlier boot: its owner might still hold an answer. A lease that outlives its request hides no answer.
    func isFree(at time: LeaseTime, takesOver: Bool) -> Bool {
        if takesOver || isOfEndedRequest { return !isLive(at: time) }
        return epoch != time.epoch
    }

    package static func == (left: Lease, right: Lease) -> Bool {
        left.claim == right.claim && left.owner == right.owner && left.epoch == right.epoch
            && left.until == right.until && left.followsUnfinishedClaim == right.followsUnfinishedClaim
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(claim) }

    /// Returns the remaining time of the lease.
    func remaining(at time: LeaseTime) -> Duration { epoch == time.epoch ? max(.zero, until - time.instant) : .zero }
}

/// An instant of the clock that times leases: the wall clock is not used, because it can be stepped.
///
/// On SQLite it is the boot clock of the one machine that the daemon and cron run on, with the boot's id as its epoch.
/// On a database server it is the server's clock. Instants of different epochs cannot be compared: a lease of another
/// epoch has ended.
package struct LeaseTime: Hashable, Sendable {
    package var epoch: String
    package var instant: BootInstant
}

extension SystemTime {
    /// Returns the id of this boot, or throws with advice if it cannot be read.
    static func requireBootID() throws(StoreError) -> String {
        guard let id = bootID else {
            throw StoreError(.cannotOpen, "\(bootIDPath) cannot be read: leases need the id of this boot. Mount /proc.")
        }
        return id
    }
}
