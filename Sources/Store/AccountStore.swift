package import Clocks

/// What a store keeps beside grants: users, their sessions, and the notices that the backend is owed.
package protocol AccountStore: GrantStore {
    func user(_ id: String) async throws -> User?
    func session(_ id: SessionID) async throws -> Session?

    /// Grants whose refresh token has no marks yet, in the order of their ids.
    func grantsWithoutMarks(after id: GrantID?, atMost count: Int) async throws -> [Grant]

    /// Removes what has had its time, a bounded number of each kind: to be called again while the answer says so.
    func sweep(at now: Timestamp) async throws -> SweepCount

    /// Takes, or renews, the right to deliver notices; one process has it at a time. Answers whether `owner` has it now.
    func claimNotices(owner: String, for span: Duration) async throws -> Bool
    /// Gives that right back.
    func releaseNotices(owner: String) async throws
    /// The notices to deliver now, the longest due first: of each user only the oldest that is pending.
    func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice]
    /// When the next notice is to be delivered; `nil` when none is pending.
    func nextNoticeAt() async throws -> Timestamp?
    func noticeAccepted(_ sequence: Int64, at now: Timestamp) async throws
    func noticePostponed(_ sequence: Int64, until next: Timestamp) async throws
    func noticeGivenUp(_ sequence: Int64, at now: Timestamp) async throws
    /// Makes notices of changes at `start` and later pending again, those that were accepted too, of one user or of all.
    /// Answers how many.
    ///
    /// It works in batches, so that other writers need not wait long: when it fails, a part of them is pending again, and the
    /// same call may be repeated. All notices of a user become pending at the same time, so that their order is kept.
    func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp) async throws -> Int
}

/// The limits of ``AccountStore/replayNotices(since:ofUser:at:)``.
package enum NoticeReplay {
    /// How many settled notices one transaction looks at; it replays the notices of their users.
    package static let batchSize = 500

    /// Returns each user once; ids are compared by their bytes, as the databases do.
    package static func distinct(_ users: [String]) -> [String] {
        var seen: Set<[UInt8]> = []
        return users.filter { seen.insert(Array($0.utf8)).inserted }
    }
}

/// A place among notices in the order of their times.
package struct NoticeCursor: Sendable {
    package var at: Timestamp
    package var sequence: Int64

    package init(at: Timestamp, sequence: Int64) {
        self.at = at
        self.sequence = sequence
    }
}

/// What one call of ``AccountStore/sweep(at:)`` removed.
package struct SweepCount: Hashable, Sendable {
    /// The most that one call removes of each kind, so that no other writer waits long.
    package static let limit = 500

    /// Sessions that had expired.
    package var sessions = 0
    /// Sealed successors whose grace was over.
    package var successors = 0
    package var securityEvents = 0
    package var notices = 0
    /// Deleted users, with their grants and histories.
    package var users = 0

    package init() {}

    /// Whether another call would find more.
    package var mayHaveMore: Bool {
        [sessions, successors, securityEvents, notices, users].contains { $0 >= Self.limit }
    }
}

/// How long things are kept that nobody asks for any more.
package enum Retention {
    /// Google delivers a security event again for days; an identifier that is remembered for two months is enough.
    package static let securityEvents: Duration = .seconds(60 * 86_400)
    /// The number of events that are kept of one grant, beside its last connection.
    ///
    /// A server that rotates adds an event for each refresh, which is 24 a day.
    package static let eventsPerGrant = 100
    /// Notices that were accepted or given up, for a replay.
    package static let notices: Duration = .seconds(7 * 86_400)
}
