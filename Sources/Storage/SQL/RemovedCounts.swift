import Base

/// The numbers of rows that one call of ``Store/removeExpired(by:at:)`` removed.
package struct RemovedCounts: Hashable, Sendable {
    /// The most rows of each kind that one call removes, so that other writers do not wait long.
    package static let limit = 500

    /// Expired sessions.
    package var sessions = 0
    /// Sealed successors whose grace has ended.
    package var successors = 0
    package var identifiers = 0
    package var notices = 0
    /// Deleted users, with their grants and histories.
    package var users = 0

    /// `true` if another call might find more.
    package var mayHaveMore: Bool {
        [sessions, successors, identifiers, notices, users].contains { $0 >= Self.limit }
    }
}

extension SQLStore {
    package func removeExpired(by end: Timestamp, at now: Timestamp) async throws -> RemovedCounts {
        let remove = { (query: SQLQuery, end: Timestamp) in
            SQLStatement(query, .time(end), .limit(RemovedCounts.limit))
        }
        let secret = try await change(
            [
                remove(.removeExpiredSessions, end),
                remove(.removeExpiredSuccessors, now),
                remove(.removeFutureSuccessors, now + Session.maximumGrace),
            ] + Self.removeTombstones.map { remove($0, end) },
            [.exclusive, .wipes]
        )
        let old = try await change(
            [
                remove(.removeOldIdentifiers, end - Retention.identifiers),
                remove(.removeOldNotices, end - Retention.notices),
            ],
            .exclusive
        )
        return RemovedCounts(
            sessions: secret[0],
            successors: secret[1] + secret[2],
            identifiers: old[0],
            notices: old[1],
            users: secret.last ?? 0
        )
    }
}
