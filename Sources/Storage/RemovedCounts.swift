/// The numbers of rows that one call of ``AccountStore/removeExpired(at:)`` removed.
package struct RemovedCounts: Hashable, Sendable {
    /// The most rows of each kind that one call removes, so that other writers do not wait long.
    package static let limit = 500

    /// Expired sessions.
    package var sessions = 0
    /// Sealed successors whose grace has ended.
    package var successors = 0
    package var securityEvents = 0
    package var notices = 0
    /// Deleted users, with their grants and histories.
    package var users = 0

    package init() {}

    /// `true` if another call may find more.
    package var mayHaveMore: Bool {
        [sessions, successors, securityEvents, notices, users].contains { $0 >= Self.limit }
    }
}
