package import Base

/// The notices of a store in memory: the pending and the finished ones, and the process that delivers them.
///
/// For each user only the oldest pending notice has a time of delivery; the next one gets its time when that one is
/// finished.
struct InMemoryOutbox {
    struct Entry {
        var notice: Notice
        /// `nil` while an older notice of the same user is pending, and once this one is finished.
        var nextTryAt: Timestamp?
        var acceptedAt: Timestamp?
        var givenUpAt: Timestamp?

        var finishedAt: Timestamp? { acceptedAt ?? givenUpAt }
    }

    private(set) var entries: [Int64: Entry] = [:]
    private var last: Int64 = 0
    private var lease: Lease?

    mutating func add(_ content: Notice.Content, userID: String, at now: Timestamp, nonce: UInt32) {
        last += 1
        let notice = Notice(
            sequence: last,
            nonce: nonce,
            userID: userID,
            at: now,
            content: content,
            pendingSince: now,
            attempts: 0
        )
        entries[last] = Entry(notice: notice)
        scheduleFirstNotices(at: now)
    }

    func due(at now: Timestamp, atMost count: Int) -> [Notice] {
        let due = entries.values.compactMap { entry in
            entry.nextTryAt.flatMap { $0 <= now ? (nextTryAt: $0, notice: entry.notice) : nil }
        }
        let sorted = due.sorted { ($0.nextTryAt, $0.notice.sequence) < ($1.nextTryAt, $1.notice.sequence) }
        return sorted.prefix(max(0, count)).map(\.notice)
    }

    var pending: PendingNotices {
        let first = entries.values.filter { $0.nextTryAt != nil }.map(\.notice.pendingSince)
        return PendingNotices(count: min(first.count, PendingNotices.limit), oldest: first.min())
    }

    var nextTryAt: Timestamp? { entries.values.compactMap(\.nextTryAt).min() }

    mutating func finish(_ sequence: Int64, at now: Timestamp, with change: (inout Entry) -> Void) {
        guard var entry = entries[sequence], entry.finishedAt == nil else { return }
        entry.nextTryAt = nil
        change(&entry)
        entries[sequence] = entry
        scheduleFirstNotices(at: now)
    }

    mutating func postpone(_ sequence: Int64, until next: Timestamp) {
        guard entries[sequence]?.nextTryAt != nil else { return }
        entries[sequence]?.nextTryAt = next
        entries[sequence]?.notice.attempts += 1
    }

    mutating func replay(since start: Timestamp, ofUser userID: String?, at now: Timestamp) -> Int {
        var count = 0
        for (sequence, entry) in entries where entry.finishedAt != nil && entry.notice.at >= start {
            guard userID == nil || userID == entry.notice.userID else { continue }
            var notice = entry.notice
            notice.attempts = 0
            notice.pendingSince = now
            entries[sequence] = Entry(notice: notice)
            count += 1
        }
        scheduleFirstNotices(at: now)
        return count
    }

    /// Makes deliveries that wait for a later time due now.
    mutating func expedite(to now: Timestamp) {
        for (sequence, entry) in entries where entry.nextTryAt.map({ $0 > now }) ?? false {
            entries[sequence]?.nextTryAt = now
        }
    }

    mutating func remove(finishedBefore limit: Timestamp, atMost count: Int) -> Int {
        let old = entries.filter { $0.value.finishedAt.map { $0 < limit } ?? false }.keys.sorted().prefix(count)
        for sequence in old { entries[sequence] = nil }
        return old.count
    }

    mutating func claim(owner: String, for span: Duration, at time: LeaseTime) -> Bool {
        if let lease, lease.owner != owner, lease.isLive(at: time) { return false }
        lease = Lease(owner: owner, claim: 0, epoch: time.epoch, until: time.instant + span)
        return true
    }

    mutating func release(owner: String) {
        if lease?.owner == owner { lease = nil }
    }

    /// Gives a time of delivery to the oldest pending notice of each user, and to no other.
    private mutating func scheduleFirstNotices(at now: Timestamp) {
        var users: Set<[UInt8]> = []
        for sequence in entries.keys.sorted() {
            guard let entry = entries[sequence], entry.finishedAt == nil else { continue }
            let isFirst = users.insert(Array(entry.notice.userID.utf8)).inserted
            entries[sequence]?.nextTryAt = isFirst ? entry.nextTryAt ?? now : nil
        }
    }
}

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
