package import Base

/// The notices at the head of each user's queue that wait for delivery.
package struct PendingNotices: Hashable, Sendable {
    /// The number of notices that a store reads at most.
    package static let limit = 1000

    /// Their number, at most ``limit``.
    package var count: Int
    /// The time since which the oldest of them waits.
    package var oldest: Timestamp?

    package init(count: Int, oldest: Timestamp?) {
        self.count = count
        self.oldest = oldest
    }
}
