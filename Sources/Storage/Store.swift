package import Base

/// The interface of every store: grants, their history, the health of each client, the live workers, the users with
/// their sessions, and the notices for the backend.
///
/// A store only reads and writes. The caller of ``transact(_:)`` decides in its body how an answer changes a grant, so
/// that the decision uses the data stored at that instant, and so that all stores decide in the same way.
///
///     let store: any Store = try SQLiteStore(path: path, timeSource: time)
///     let claimed = try await store.claim(ids, dueBy: now, owner: "worker-1", for: Lease.span, takesOver: false)
///     try await store.transact { transaction in
///         guard var grant = try transaction.grant(id) else { return }
///         grant.makeDueNow(at: now)
///         try transaction.update(grant)
///     }
package protocol Store: Sendable {
    /// Returns the current time on the clock of this store's leases.
    func leaseTime() async throws -> LeaseTime
    /// The id of this machine's boot, to which every ``BootInstant`` of its boot clock belongs.
    var bootID: String { get }

    /// Runs `body` in one transaction that excludes all other writers, in this process and in others, except
    /// ``storePlain(_:at:)`` of other grants.
    ///
    /// Its writes are durable when this returns. If it throws, nothing is written.
    ///
    /// Its notices have the trace of the request whose task calls this (``TraceContext/current``).
    func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result

    /// Runs `body` like ``transact(_:)``, ahead of requests from outside where the store can: it stores answers that
    /// might hold rotated tokens.
    ///
    /// Its notices have no trace: one batch holds results for many callers, and its task can have inherited the trace of
    /// any of them.
    func storeResults<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result

    /// `true` if workers on several machines can share the store.
    ///
    /// Then it takes plain refreshes (``storePlain(_:at:)``): each transaction excludes the others and takes round
    /// trips.
    var isSharedByWorkers: Bool { get }

    /// Stores successful refreshes without taking the writer lock.
    ///
    /// Skips grants that were changed or claimed again since then. Returns the ids that it stored.
    ///
    /// They are durable when this returns. ``StoreTransaction/takeUncountedSuccesses(of:)`` returns them for the health
    /// of their clients. All others are left as they are, for ``storeResults(_:)``.
    func storePlain(_ refreshes: [PlainRefresh], at now: Timestamp) async throws -> Set<GrantID>

    /// Leases, in one transaction, those of `ids` that are due by `dueBy` (`nil`: at any time) and not leased to
    /// another worker.
    ///
    /// Returns the leased grants, without those that another worker holds or has finished. Unless `takesOver`, it also
    /// leaves out those whose lease has ended without a result or a release: their worker can still hold an answer.
    func claim(
        _ ids: [GrantID],
        dueBy: Timestamp?,
        owner: String,
        for span: Duration,
        takesOver: Bool
    ) async throws -> [Grant]

    /// Extends leases that are still held under the same claim, also those that have ended. Returns their ids.
    func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID>

    /// Releases leases without a call to Google.
    func release(_ leases: [GrantID: Int64]) async throws

    /// Returns the client ids of all grants that have a due time, sorted by name.
    func clientsWithDueTimes() async throws -> [String]

    /// Returns the next grants of one client after a cursor that are due by `limit`, sorted by due time.
    func due(ofClient clientID: String, by limit: Timestamp, after cursor: DueEntry?, atMost count: Int) async throws
        -> [DueEntry]

    /// Waits for a full look for grants that are due for long, if one is under way.
    ///
    /// Throws if the last one failed.
    func waitForFullLook(ofClient clientID: String) async throws

    /// Makes grants of a client due by `dueBy` that are in `retrying` for a reason that might pass, and do not wait for
    /// confirmation.
    ///
    /// It handles at most `count` grants after `cursor` in the order of their ids, in a transaction of its own, and
    /// returns the id to continue after, or `nil` at the end.
    func expediteRetries(
        ofClient clientID: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID?

    func grant(_ id: GrantID) async throws -> Grant?
    func grant(ofUser userID: String, connection: ConnectionID) async throws -> Grant?
    /// Returns all grants of a user, that of the default connection first.
    func grants(ofUser userID: String) async throws -> [Grant]

    /// `true` if a user has a connection beside the default one.
    var hasOtherConnections: Bool { get async throws }

    /// Returns one page of all grants, sorted by id.
    func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant]
    /// Returns the grants whose user or Google account has an e-mail address, in any case.
    func grants(ofEmail email: String, atMost count: Int) async throws -> [Grant]

    /// Returns the history of one grant, the latest event first.
    func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent]

    /// Returns the numbers of grants in each state, of those that are due, and of those that end soon.
    func grantStatistics(at now: Timestamp, refreshTokensEndingBefore end: Timestamp, idleSince: Timestamp) async throws
        -> GrantStatistics

    /// Returns the connected grants whose refresh token ends after `now` and by `end`, and is not announced yet.
    func unannounced(endingBy end: Timestamp, at now: Timestamp, atMost count: Int) async throws -> [GrantID]

    /// Counts the stored tokens, and those that need each key.
    func keyUse() async throws -> KeyUse

    /// Repairs grants that were stored or tried later than `now`, by a clock that was ahead, and returns their number.
    ///
    /// Neither the expiry nor the due time of such a grant can be trusted, so it becomes due at `now`, spread over a
    /// minute. One whose refusal is in doubt is left to ``restartDoubts(at:confirmingAt:)``. Pending notices are due at
    /// once.
    func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int

    /// Makes every doubt about a refusal begin anew at `now`, after a step of the clock, and returns the clients of these
    /// grants.
    ///
    /// The confirmations come at `dueAt` and within the minute after it.
    func restartDoubts(at now: Timestamp, confirmingAt dueAt: Timestamp) async throws -> Set<String>

    /// Stores the report of this worker, and returns the last reports of all live workers.
    func report(_ worker: WorkerReport) async throws -> [WorkerReport]
    func liveWorkers() async throws -> [WorkerReport]
    func removeWorker(_ id: String) async throws

    /// Returns the short text that the store keeps under a name, or `nil` if there is none.
    func note(_ name: String) async throws -> String?

    /// Replaces a note if it is still the one that the caller has read, or returns `false` if it is not.
    func replaceNote(_ name: String, from former: String?, with text: String) async throws -> Bool

    /// Throws if the store cannot be used now: it cannot be read, or it is a server that does not accept writes.
    func checkUsable() async throws

    /// Returns the health of each client, as last stored.
    func clientHealth() async throws -> [String: [UInt8]]

    /// Returns the reading of both clocks that was stored last, so that a step between two runs can be found.
    func clockReading() async throws -> ClockReading?

    /// Stores a reading of both clocks.
    func record(_ reading: ClockReading) async throws

    /// Looks for grants that something else has removed, added or left without a due time.
    ///
    /// Returns the text for a person if there are some.
    ///
    /// PostgreSQL reads a table for it: a second for ten million grants.
    func grantRowProblem() async throws -> String?

    /// Returns the transaction that keeps the most dead rows in the tables, on PostgreSQL and as far as this program's
    /// user can see it.
    func oldestTransaction() async throws -> OldestTransaction?

    /// Returns the incidents that ``takeIncidents()`` has not returned, and leaves them to it.
    func pendingIncidents() -> [StoreIncident]

    /// Returns the incidents since the last call, each once.
    func takeIncidents() -> [StoreIncident]

    /// Closes files and connections, after which the store must not be used.
    func close() async

    // MARK: Users, their sessions, and the notices for the backend

    func user(_ id: String) async throws -> User?
    /// Returns one page of all users, with the tombstones of deleted ones, sorted by the bytes of their ids.
    func users(after id: String?, atMost count: Int) async throws -> [User]
    /// Returns the users with this e-mail address, as a transaction does.
    func users(withEmail email: String) async throws -> [User]
    func session(_ id: SessionID, ofUser userID: String) async throws -> Session?
    /// Returns the first of the identifiers that begin with this prefix (``StoreTransaction/recordOnce(_:at:)``).
    func identifier(from prefix: String) async throws -> String?
    /// Returns when a user without a grant has disconnected, if that was lately.
    func disconnectTime(ofUserWithoutGrant userID: String) async throws -> Timestamp?
    /// Returns the date of tokens whose connection was stored by an import at this time, if it was recorded.
    func dateOfTokens(importedFor grant: GrantID, at storedAt: Timestamp) async throws -> Timestamp?

    /// Removes expired data, a bounded number of each kind.
    ///
    /// Call it again while the result says that there might be more. `end` is before `now` if the clock might be ahead:
    /// only the successors of sessions, which are kept for seconds, are removed by `now`.
    func removeExpired(by end: Timestamp, at now: Timestamp) async throws -> RemovedCounts

    /// Takes, or renews, the right to deliver notices, which one process has at a time.
    ///
    /// It returns `true` if `owner` has it now.
    func claimNotices(owner: String, for span: Duration) async throws -> Bool
    /// Releases the right to deliver notices.
    func releaseNotices(owner: String) async throws
    /// Returns the notices to deliver now, the longest overdue first, of each user only the oldest pending one.
    func dueNotices(at now: Timestamp, atMost count: Int) async throws -> [Notice]
    /// Returns the time of the next delivery, or `nil` if no notice is pending.
    func nextNoticeAt() async throws -> Timestamp?
    /// Returns how many notices wait for delivery, and for how long.
    func pendingNotices() async throws -> PendingNotices
    func noticeAccepted(_ notice: Notice, at now: Timestamp) async throws
    func noticePostponed(_ notice: Notice, until next: Timestamp) async throws
    func noticeGivenUp(_ notice: Notice, at now: Timestamp) async throws
    /// Makes notices of changes at `start` and later pending again, including accepted ones, for one user or all, and
    /// returns their number.
    ///
    /// It works in batches, so that other writers do not wait long: if it fails, some of the notices are pending again,
    /// and the same call can be repeated. All notices of a user become pending at the same time, so that their order is
    /// kept.
    func replayNotices(since start: Timestamp, ofUser userID: String?, at now: Timestamp) async throws -> Int

    // MARK: Copies of the whole store
    //
    // Records are copied out and in page by page, in an order that is the same in every store. Leases, live workers and
    // clock readings belong to one store at one time, and are not copied.

    func count(of kind: ArchiveRecord.Kind) async throws -> Int

    /// Returns the records of a kind after another one, sorted by key.
    func records(of kind: ArchiveRecord.Kind, after last: ArchiveRecord?, atMost count: Int) async throws
        -> [ArchiveRecord]

    /// Returns the record of a kind with the greatest key, which shows how far a copy has come.
    func lastRecord(of kind: ArchiveRecord.Kind) async throws -> ArchiveRecord?

    /// `true` if a copy into this store was begun and is not finished, so that the store is incomplete.
    var isReceiving: Bool { get async throws }

    /// Marks an empty store as the target of a copy.
    ///
    /// Throws ``StoreError/Code/conflict`` if the store holds records, unless it is marked already.
    func beginReceiving() async throws

    /// Adds records of one kind with their keys, in one transaction.
    func receive(_ records: [ArchiveRecord]) async throws

    /// Marks the copy as complete and this database as usable, and removes a mark that it was moved.
    func endReceiving() async throws

    /// The location to which the database was moved, or `nil` if it was not moved.
    ///
    /// A moved database must not be used any more, or grants would be refreshed in two databases.
    var movedTo: String? { get async throws }

    /// Returns the remaining time of the last lease in this store, or `nil` if there is none.
    func remainingLease() async throws -> Duration?

    /// Marks the database as moved to a location, or removes the mark for `nil`.
    ///
    /// While the mark exists, claims and transactions throw ``StoreError/Code/moved``.
    func markMoved(to location: String?) async throws
}

extension Store {
    /// Claims grants, also those that another worker has left unfinished.
    package func claim(_ ids: [GrantID], dueBy: Timestamp?, owner: String, for span: Duration) async throws -> [Grant] {
        try await claim(ids, dueBy: dueBy, owner: owner, for: span, takesOver: true)
    }

    package func checkUsable() async throws { _ = try await clientHealth() }

    package func storeResults<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        try await TraceContext.$current.withValue(nil) { try await transact(body) }
    }

    package var isSharedByWorkers: Bool { false }

    package func storePlain(_ refreshes: [PlainRefresh], at now: Timestamp) async throws -> Set<GrantID> { [] }

    package func waitForFullLook(ofClient _: String) async throws {}

    package func oldestTransaction() async throws -> OldestTransaction? { nil }

    package func pendingIncidents() -> [StoreIncident] { [] }

    package func takeIncidents() -> [StoreIncident] { [] }
}

/// One entry of a client's part of the due index.
package struct DueEntry: Hashable, Sendable {
    package var dueAt: Timestamp
    package var id: GrantID
}

/// An event of a database that the worker logs.
///
/// Most kinds are alarms, which a person must check.
package struct StoreIncident: Hashable, Sendable {
    package enum Kind: Sendable {
        /// A standby was promoted: with asynchronous replication the last commits before that are lost.
        case failedOver
        /// The database is another one than at its last use: in another cluster, or a copy within the server.
        case databaseReplaced
        /// The tables that a running worker used are missing.
        case tablesLost
        /// Rows or due times are gone that this program did not remove.
        case rowsLost
        /// A change of the tables that can wait could not be made. The next start tries again.
        case changeWaits
        /// Grants that are due for long might not be found. It is tried again.
        case lookFailed
        /// Another file was in the place of one of this program's, and was renamed.
        case fileSetAside
    }

    package var kind: Kind
    /// A sentence for people.
    package var text: String

    /// Returns the incident that ``Store/grantRowProblem()`` describes.
    package static func rowsLost(_ text: String) -> StoreIncident { StoreIncident(kind: .rowsLost, text: text) }
}
