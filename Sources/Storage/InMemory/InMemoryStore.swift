package import Base
package import Crypto
private import Synchronization

/// A store in memory, with the same rules as the stores on disk: for tests, and as a plain statement of those rules.
package final class InMemoryStore: AccountStore {
    /// The stored data; a transaction works on a copy, which replaces it when the body returns.
    struct State {
        var grants: [GrantID: Grant] = [:]
        var idOfUser: [String: GrantID] = [:]
        var events: [GrantID: [GrantEvent]] = [:]
        var users: [String: User] = [:]
        var sessions: [SessionID: Session] = [:]
        var securityEvents: [String: Timestamp] = [:]
        var outbox = InMemoryOutbox()
        var health: [String: [UInt8]] = [:]
        var uncountedSuccesses: [String: [UncountedSuccesses]] = [:]
        var notes: [String: String] = [:]
        var workers: [String: (report: WorkerReport, heartbeat: BootInstant)] = [:]
        var clockReading: ClockReading?
        var isClosed = false
        var transactions = 0
    }

    private let timeSource: any TimeSource
    private let random: any RandomSource
    private let epoch: String
    private let keepsNotices: Bool
    package let storesPlainRefreshes: Bool
    private let state = Mutex(State())

    /// Creates an empty store; `keepsNotices` is `true` if events that concern the backend go to the outbox, and
    /// `storesPlainRefreshes` if it takes those, as PostgreSQL does.
    package init(
        timeSource: any TimeSource,
        random: any RandomSource = SystemRandom(),
        epoch: String = "memory",
        keepsNotices: Bool = false,
        storesPlainRefreshes: Bool = false
    ) {
        self.timeSource = timeSource
        self.random = random
        self.epoch = epoch
        self.keepsNotices = keepsNotices
        self.storesPlainRefreshes = storesPlainRefreshes
    }

    /// The number of transactions so far, including failed ones.
    package var transactions: Int { state.withLock(\.transactions) }

    package func leaseTime() async throws -> LeaseTime { leaseTimeNow }

    var leaseTimeNow: LeaseTime { LeaseTime(epoch: epoch, instant: timeSource.sinceBoot) }

    package func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        let time = leaseTimeNow
        return try withOpenState { state in
            let transaction = InMemoryTransaction(
                state: state,
                leaseTime: time,
                noticeNonces: keepsNotices ? random : nil
            )
            state.transactions += 1
            transaction.state.transactions = state.transactions
            let result = try body(transaction)
            state = transaction.state
            return result
        }
    }

    package func storePlain(_ refreshes: [PlainRefresh], at now: Timestamp) async throws -> Set<GrantID> {
        try withOpenState { state in
            var stored: Set<GrantID> = []
            for refresh in refreshes {
                let (id, client) = (refresh.claimed.id, refresh.claimed.clientID)
                guard state.grants[id]?.isSame(asClaimed: refresh.claimed) == true else { continue }
                state.grants[id] = refresh.refreshed
                state.uncountedSuccesses[client, default: []].append(
                    UncountedSuccesses(at: now, count: 1, clientSecret: refresh.clientSecret)
                )
                stored.insert(id)
            }
            return stored
        }
    }

    package func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration,
        takesOver: Bool
    ) async throws -> [Grant] {
        let time = leaseTimeNow
        return try withOpenState { state in
            var claimed: [Grant] = []
            for id in ids {
                guard
                    var grant = state.grants[id],
                    grant.lease?.isFree(at: time, takesOver: takesOver) ?? true,
                    grant.mayBeClaimed(dueBy: dueBy)
                else { continue }
                let claim = Int64(random.nextBits() >> 1)
                let isUnfinished = grant.lease.map { !$0.isOfEndedRequest } ?? false
                var lease = Lease(owner: owner, claim: claim, epoch: time.epoch, until: time.instant + span)
                grant.setLease(lease)
                state.grants[id] = grant
                lease.followsUnfinishedClaim = isUnfinished
                grant.setLease(lease)
                claimed.append(grant)
            }
            return claimed
        }
    }

    package func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID> {
        let time = leaseTimeNow
        return try withOpenState { state in
            var renewed: Set<GrantID> = []
            for (id, claim) in leases {
                guard
                    var lease = state.grants[id]?.lease,
                    lease.claim == claim,
                    lease.epoch == time.epoch
                else { continue }
                lease.until = time.instant + span
                state.grants[id]?.setLease(lease)
                renewed.insert(id)
            }
            return renewed
        }
    }

    package func release(_ leases: [GrantID: Int64]) async throws {
        try withOpenState { state in
            for (id, claim) in leases where state.grants[id]?.lease?.claim == claim {
                state.grants[id]?.setLease(nil)
            }
        }
    }

    package var bootID: String { epoch }

    package func clientsWithDueTimes() async throws -> [String] {
        try withOpenState { state in
            Set(state.grants.values.filter { $0.dueAt != nil }.map(\.clientID)).sorted()
        }
    }

    package func due(
        ofClient clientID: String,
        by limit: Timestamp,
        after cursor: DueEntry?,
        atMost count: Int
    ) async throws -> [DueEntry] {
        try withOpenState { state in
            let entries = state.grants.values.compactMap { grant -> DueEntry? in
                guard grant.clientID == clientID, let dueAt = grant.dueAt, dueAt <= limit else { return nil }
                return DueEntry(dueAt: dueAt, id: grant.id)
            }
            let following = entries.filter { entry in
                guard let cursor else { return true }
                return (entry.dueAt, entry.id) > (cursor.dueAt, cursor.id)
            }
            return Array(following.sorted { ($0.dueAt, $0.id) < ($1.dueAt, $1.id) }.prefix(max(0, count)))
        }
    }

    package func expediteRetries(
        ofClient clientID: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID? {
        try withOpenState { state in
            let ids = state.grants.values.filter { grant in
                grant.clientID == clientID && grant.mayBeExpedited && grant.dueAt.map { $0 > dueBy } ?? false
                    && (cursor.map { grant.id > $0 } ?? true)
            }.map(\.id).sorted().prefix(max(0, count))
            for id in ids { state.grants[id]?.reschedule(to: dueBy) }
            return ids.count < count ? nil : ids.last
        }
    }

    package func grant(_ id: GrantID) async throws -> Grant? {
        try withOpenState { $0.grants[id] }
    }

    package func grant(ofUser userID: String) async throws -> Grant? {
        try withOpenState { $0.grant(ofUser: userID) }
    }

    package func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant] {
        try withOpenState { stored in
            let following = stored.grants.values.filter { grant in
                (state == nil || grant.state == state) && (id.map { grant.id > $0 } ?? true)
            }
            return Array(following.sorted { $0.id < $1.id }.prefix(max(0, count)))
        }
    }

    package func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent] {
        try withOpenState { Array(($0.events[id] ?? []).reversed().prefix(max(0, count))) }
    }

    package func grantStatistics(
        at now: Timestamp,
        refreshTokensEndingBefore end: Timestamp,
        idleSince: Timestamp
    ) async throws -> GrantStatistics {
        try withOpenState { state in
            let grants = state.grants.values
            let due = grants.compactMap(\.dueAt).filter { $0 <= now }
            let connected = grants.filter(\.state.isConnected)
            var expired = ExpiredGrants()
            for grant in connected where grant.state == .retrying || (grant.dueAt.map { $0 <= now } ?? false) {
                let end = grant.accessToken?.expiresAt ?? grant.since
                if end <= now { expired.add(1, oldest: end, client: grant.clientID) }
            }
            return GrantStatistics(
                byState: Dictionary(grouping: grants, by: \.state).mapValues(\.count),
                due: due.count,
                oldestDueAt: due.min(),
                refreshTokensEnding: connected.count { grant in
                    (grant.refreshToken?.expiresAt).map { $0 < end } ?? false
                },
                idle: connected.count { grant in
                    grant.refreshToken != nil && (grant.lastSuccessAt ?? grant.createdAt) < idleSince
                },
                expired: expired,
                inDoubt: grants.reduce(into: [:]) { doubted, grant in
                    guard grant.state == .retrying, grant.reason == .invalidGrantUnconfirmed else { return }
                    doubted[grant.clientID, default: 0] += 1
                }
            )
        }
    }

    package func keysInUse() async throws -> [KeyID: Int] {
        try withOpenState { state in
            state.grants.values.reduce(into: [:]) { keys, grant in
                for sealed in [grant.refreshToken?.sealed, grant.accessToken?.sealed].compactMap(\.self) {
                    keys[sealed.keyID, default: 0] += 1
                }
            }
        }
    }

    package func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int {
        try withOpenState { state in
            let ids = state.grants.values.filter { grant in
                grant.dueAt != nil && grant.reason != .invalidGrantUnconfirmed
                    && [grant.accessToken?.obtainedAt, grant.lastAttemptAt].contains { $0.map { $0 > now } ?? false }
            }.map(\.id)
            for id in ids {
                state.grants[id]?.reschedule(to: now + .seconds(60) * id.phase)
            }
            state.outbox.expedite(to: now)
            return ids.count
        }
    }

    package func report(_ worker: WorkerReport) async throws -> [WorkerReport] {
        let now = timeSource.sinceBoot
        return try withOpenState { state in
            state.workers[worker.id] = (worker, now)
            state.workers = state.workers.filter { $0.value.heartbeat + WorkerReport.lifetime >= now }
            return state.liveWorkers(at: now)
        }
    }

    package func liveWorkers() async throws -> [WorkerReport] {
        let now = timeSource.sinceBoot
        return try withOpenState { $0.liveWorkers(at: now) }
    }

    package func removeWorker(_ id: String) async throws {
        try withOpenState { $0.workers[id] = nil }
    }

    package func note(_ name: String) async throws -> String? {
        try withOpenState { $0.notes[name] }
    }

    package func replaceNote(_ name: String, _ former: String?, with text: String) async throws -> Bool {
        try withOpenState { state in
            guard state.notes[name] == former else { return false }
            state.notes[name] = text
            return true
        }
    }

    package func clientHealth() async throws -> [String: [UInt8]] {
        try withOpenState { $0.health }
    }

    package func clockReading() async throws -> ClockReading? {
        try withOpenState(\.clockReading)
    }

    package func record(_ reading: ClockReading) async throws {
        try withOpenState { $0.clockReading = reading }
    }

    package func close() async {
        state.withLock { $0.isClosed = true }
    }

    func withOpenState<Result: Sendable>(_ body: (inout State) throws -> Result) throws -> Result {
        try state.withLock { state in
            guard !state.isClosed else { throw StoreError(.closed, "The store is closed.") }
            return try body(&state)
        }
    }
}

extension InMemoryStore.State {
    func grant(ofUser userID: String) -> Grant? {
        idOfUser[userID].flatMap { grants[$0] }
    }

    func liveWorkers(at now: BootInstant) -> [WorkerReport] {
        workers.values.filter { $0.heartbeat + WorkerReport.lifetime >= now }.map(\.report).sorted { $0.id < $1.id }
    }
}

extension Grant {
    /// The rule of ``GrantStore/claim(_:dueBy:owner:for:takesOver:)`` about due times and states.
    fileprivate func mayBeClaimed(dueBy limit: Timestamp?) -> Bool {
        guard let limit else { return !state.endsRefreshes || revocationAskedAt != nil }
        guard let dueAt else { return false }
        return dueAt <= limit
    }
}

extension InMemoryStore {
    package func user(_ id: String) async throws -> User? {
        try withOpenState { $0.users[id] }
    }

    package func users(after id: String?, atMost count: Int) async throws -> [User] {
        try withOpenState { state in
            let following = state.users.values.filter { user in
                id.map { $0.utf8.lexicographicallyPrecedes(user.id.utf8) } ?? true
            }
            let sorted = following.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
            return Array(sorted.prefix(max(0, count)))
        }
    }

    package func session(_ id: SessionID) async throws -> Session? {
        try withOpenState { $0.sessions[id] }
    }

    package func removeExpired(at now: Timestamp) async throws -> RemovedCounts {
        try withOpenState { $0.removeExpired(at: now) }
    }
}

extension InMemoryStore.State {
    fileprivate mutating func removeExpired(at now: Timestamp) -> RemovedCounts {
        var count = RemovedCounts()
        for (id, session) in sessions where !session.isLive(at: now) && count.sessions < RemovedCounts.limit {
            sessions[id] = nil
            count.sessions += 1
        }
        for id in Array(sessions.keys) where count.successors < RemovedCounts.limit {
            if sessions[id]?.wipeSuccessor(at: now) == true { count.successors += 1 }
        }
        for (identifier, at) in securityEvents where at < now - Retention.securityEvents {
            guard count.securityEvents < RemovedCounts.limit else { break }
            securityEvents[identifier] = nil
            count.securityEvents += 1
        }
        count.notices = outbox.remove(finishedBefore: now - Retention.notices, atMost: RemovedCounts.limit)
        for (id, user) in users where user.deletedUntil.map({ $0 <= now }) ?? false {
            guard count.users < RemovedCounts.limit else { break }
            let grant = grant(ofUser: id)
            guard grant?.revocationAskedAt == nil else { continue }
            if let grant {
                grants[grant.id] = nil
                events[grant.id] = nil
                idOfUser[id] = nil
            }
            sessions = sessions.filter { $0.value.userID != id }
            users[id] = nil
            count.users += 1
        }
        return count
    }
}
