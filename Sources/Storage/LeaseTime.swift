package import Base

/// An instant of the clock that times leases: the wall clock is not used, because it may be stepped.
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

extension BootID {
    /// Returns the id of this boot; throws with advice if it cannot be read.
    package static func require() throws(StoreError) -> String {
        guard let id = read() else {
            throw StoreError(.cannotOpen, "\(path) cannot be read: leases need the id of this boot. Mount /proc.")
        }
        return id
    }
}
