package import Base

/// The backups that a timer of systemd makes every night.
package struct NightlyBackups: Equatable, Sendable {
    package var folder: String
    /// The time of the latest copy.
    package var lastAt: Timestamp?
    /// The time at which the timer was turned on.
    package var isOnSince: Timestamp

    package init(folder: String, lastAt: Timestamp?, isOnSince: Timestamp) {
        self.folder = folder
        self.lastAt = lastAt
        self.isOnSince = isOnSince
    }
}
