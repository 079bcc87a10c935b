package import Clocks

/// A store that also keeps users, their sessions, and the notices for the backend.
package protocol AccountStore: GrantStore {
    func user(_ id: String) async throws -> User?
    func session(_ id: SessionID) async throws -> Session?

    /// Returns grants whose refresh token has no marks yet, sorted by id.
    func grantsWithoutMarks(after id: GrantID?, atMost count: Int) async throws -> [Grant]

    /// Removes expired data, a bounded number of each kind; to be called again while the result says that there may be
    /// more.
    func sweep(at now: Timestamp) async throws -> SweepCount

    /// Takes, or renews, the right to deliver notices, which one process has at a time; returns `true` if `owner` has
    /// it now.
    func claimNotices(owner: String, for span: Duration) async throws -> Bool
    /// Releases the right to deliver notices.
    func releaseNotices(owner: String) async throws
    /// Returns the notices to deliver now, the longest overdue first; for each user only the oldest pending one.
    func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice]
    /// Returns the time of the next delivery; `nil` if no notice is pending.
    func nextNoticeAt() async throws -> Timestamp?
    func noticeAccepted(_ sequence: Int64, at now: Timestamp) async throws
    func noticePostponed(_ sequence: Int64, until next: Timestamp) async throws
    func noticeGivenUp(_ sequence: Int64, at now: Timestamp) async throws
    /// Makes notices of changes at `start` and later pending again, including accepted ones, for one user or all;
    /// returns their number.
    ///
    /// It works in batches, so that other writers do not wait long: if it fails, some of the notices are pending again,
    /// and the same call may be repeated. All notices of a user become pending at the same time, so that their order is
    /// kept.
    func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp) async throws -> Int
}

/// The limits of ``AccountStore/replayNotices(since:ofUser:at:)``.
package enum NoticeReplay {
    /// The number of settled notices that one transaction reads; it replays the notices of their users.
    package static let batchSize = 500

    /// Returns each user once; ids are compared by their bytes, as the databases do.
    package static func distinct(_ users: [String]) -> [String] {
        var seen: Set<[UInt8]> = []
        return users.filter { seen.insert(Array($0.utf8)).inserted }
    }
}

/// A position in the order of notices by time.
package struct NoticeCursor: Sendable {
    package var at: Timestamp
    package var sequence: Int64

    package init(at: Timestamp, sequence: Int64) {
        self.at = at
        self.sequence = sequence
    }
}

/// The numbers of rows that one call of ``AccountStore/sweep(at:)`` removed.
package struct SweepCount: Hashable, Sendable {
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

/// The time for which data is kept after its last use.
package enum Retention {
    /// Google repeats a security event for days; its identifier is kept for two months.
    package static let securityEvents: Duration = .seconds(60 * 86_400)
    /// The number of events that are kept for one grant, in addition to its last connection.
    ///
    /// A server that rotates adds an event for each refresh, which is 24 a day.
    package static let eventsPerGrant = 100
    /// Notices that were accepted or given up are kept for a replay.
    package static let notices: Duration = .seconds(7 * 86_400)
}
