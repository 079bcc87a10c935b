package import Base

extension InMemoryStore {
    package func claimNotices(owner: String, for span: Duration) async throws -> Bool {
        let time = leaseTimeNow
        return try withOpenState { $0.outbox.claim(owner: owner, for: span, at: time) }
    }

    package func releaseNotices(owner: String) async throws {
        try withOpenState { $0.outbox.release(owner: owner) }
    }

    package func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice] {
        try withOpenState { $0.outbox.due(at: now, atMost: count) }
    }

    package func nextNoticeAt() async throws -> Timestamp? {
        try withOpenState { $0.outbox.nextTryAt }
    }

    package func pendingNotices() async throws -> PendingNotices {
        try withOpenState { $0.outbox.pending }
    }

    package func noticeAccepted(_ sequence: Int64, at now: Timestamp) async throws {
        try withOpenState { state in
            state.outbox.finish(sequence, at: now) { $0.acceptedAt = now }
        }
    }

    package func noticePostponed(_ sequence: Int64, until next: Timestamp) async throws {
        try withOpenState { $0.outbox.postpone(sequence, until: next) }
    }

    package func noticeGivenUp(_ sequence: Int64, at now: Timestamp) async throws {
        try withOpenState { state in
            state.outbox.finish(sequence, at: now) { $0.givenUpAt = now }
        }
    }

    package func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp) async throws -> Int {
        try withOpenState { $0.outbox.replay(since: start, ofUser: userID, at: now) }
    }
}
