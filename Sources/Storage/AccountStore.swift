package import Base

/// A store that also keeps users, their sessions, and the notices for the backend.
package protocol AccountStore: GrantStore {
    func user(_ id: String) async throws -> User?
    /// Returns one page of all users, with the tombstones of deleted ones, sorted by the bytes of their ids.
    func users(after id: String?, atMost count: Int) async throws -> [User]
    func session(_ id: SessionID) async throws -> Session?

    /// Removes expired data, a bounded number of each kind; to be called again while the result says that there may be
    /// more.
    func removeExpired(at now: Timestamp) async throws -> RemovedCounts

    /// Takes, or renews, the right to deliver notices, which one process has at a time; returns `true` if `owner` has
    /// it now.
    func claimNotices(owner: String, for span: Duration) async throws -> Bool
    /// Releases the right to deliver notices.
    func releaseNotices(owner: String) async throws
    /// Returns the notices to deliver now, the longest overdue first; for each user only the oldest pending one.
    func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice]
    /// Returns the time of the next delivery; `nil` if no notice is pending.
    func nextNoticeAt() async throws -> Timestamp?
    /// Returns how many notices wait for delivery, and for how long.
    func pendingNotices() async throws -> PendingNotices
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
