package import Clocks
package import Secrets

/// The interface of every store: grants, their history, the health of each client, and the live workers.
///
/// A store only reads and writes. The caller of ``transact(_:)`` decides in its body how an answer changes a grant, so
/// that the decision uses the data stored at that instant, and so that all stores decide in the same way.
package protocol GrantStore: Sendable {
    /// Returns the current time on the clock of this store's leases.
    func leaseTime() async throws -> LeaseTime
    /// The name of this machine's boot, to which every ``BootInstant`` of its boot clock belongs.
    var bootID: String { get }

    /// Runs `body` in one transaction that excludes all other writers, in this process and in others.
    ///
    /// Its writes are durable when this returns; if it throws, nothing is written.
    func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result

    /// Runs `body` like ``transact(_:)``, ahead of requests from outside where the store can: it stores answers that
    /// may hold rotated tokens.
    func storeResults<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result

    /// Leases, in one transaction, those of `ids` that are due by `dueBy` (`nil`: at any time) and not leased to
    /// another worker.
    ///
    /// Returns the leased grants, without those that another worker holds or has finished.
    func claim(_ ids: [GrantID], dueBy: Timestamp?, owner: String, for span: Duration) async throws -> [Grant]

    /// Extends leases that are still held under the same claim; returns their ids.
    func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID>

    /// Releases leases without a call to Google.
    func release(_ leases: [GrantID: Int64]) async throws

    /// Returns the client ids of all grants that have a due time, sorted by name.
    func clientsWithDueTimes() async throws -> [String]

    /// Returns the next grants of one client after a cursor that are due by `limit`, sorted by due time.
    func due(ofClient clientID: String, by limit: Timestamp, after cursor: DueEntry?, atMost count: Int) async throws
        -> [DueEntry]

    /// Makes grants of a client due by `dueBy` that are in `retrying` for a reason that may pass, and do not wait for
    /// confirmation.
    ///
    /// It handles at most `count` grants after `cursor` in the order of their ids, in a transaction of its own, and
    /// returns the id to continue after, or `nil` at the end.
    func hastenRetries(
        ofClient clientID: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID?

    func grant(_ id: GrantID) async throws -> Grant?
    func grant(ofUser userID: String) async throws -> Grant?

    /// Returns one page of all grants, sorted by id.
    func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant]

    /// Returns the history of one grant, the latest event first.
    func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent]

    /// Returns the numbers of grants in each state, of those that are due, and of those that end soon.
    func census(at now: Timestamp, refreshTokensEndingBefore end: Timestamp, idleSince: Timestamp) async throws
        -> Census

    /// Returns the keys that seal stored tokens, with the number of tokens of each.
    func keysInUse() async throws -> [KeyID: Int]

    /// Repairs grants that were stored or tried later than `now`, by a clock that was ahead; returns their number.
    ///
    /// Neither the expiry nor the due time of such a grant can be trusted, so it becomes due at `now`, spread over a
    /// minute. A grant that waits for confirmation is left alone: an early retry would defeat the confirmation delay.
    /// Pending notices are due at once.
    func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int

    /// Stores the report of this worker, and returns the last reports of all live workers.
    func report(_ worker: WorkerReport) async throws -> [WorkerReport]
    func liveWorkers() async throws -> [WorkerReport]
    func forgetWorker(_ id: String) async throws

    /// Returns the short text that the store keeps under a name; `nil` if there is none.
    func note(_ name: String) async throws -> String?

    /// Replaces a note if it is still the one that the caller has read; returns `false` if it is not.
    func replaceNote(_ name: String, _ former: String?, with text: String) async throws -> Bool

    /// Throws if the store cannot be used now: it cannot be read, or it is a server that does not accept writes.
    func checkUsable() async throws

    /// Returns the health of each client, as last stored.
    func clientHealth() async throws -> [String: [UInt8]]

    /// Returns the reading of both clocks that was stored last, so that a step between two runs can be found.
    func clockReading() async throws -> ClockReading?

    /// Stores a reading of both clocks.
    func record(_ reading: ClockReading) async throws

    /// Returns the incidents since the last call, each once.
    func takeIncidents() -> [StoreIncident]

    /// Closes files and connections; the store is not used after this.
    func close() async
}

/// One entry of a client's part of the due index.
package struct DueEntry: Hashable, Sendable {
    package var dueAt: Timestamp
    package var id: GrantID

    package init(dueAt: Timestamp, id: GrantID) {
        self.dueAt = dueAt
        self.id = id
    }
}

/// The report of a live worker about itself.
package struct WorkerReport: Hashable, Sendable {
    /// The age after which a report belongs to a dead worker.
    package static let lifetime: Duration = .seconds(30)

    package var id: String
    /// Every key with which it can open tokens.
    package var keyIDs: [KeyID]
    package var sealingKeyID: KeyID
    /// `true` if it sends refreshes: all such workers share the pace of a client id and the due grants.
    package var isRefreshing: Bool

    package init(id: String, keyIDs: [KeyID], sealingKeyID: KeyID, isRefreshing: Bool = false) {
        self.id = id
        self.keyIDs = keyIDs
        self.sealingKeyID = sealingKeyID
        self.isRefreshing = isRefreshing
    }
}

extension GrantStore {
    package func checkUsable() async throws { _ = try await clientHealth() }

    package func storeResults<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result {
        try await transact(body)
    }

    package func takeIncidents() -> [StoreIncident] { [] }
}

extension BootID {
    /// Returns the boot's name, or throws with advice if it cannot be read.
    package static func require() throws(StoreError) -> String {
        guard let id = read() else {
            throw StoreError(.cannotOpen, "\(path) cannot be read: leases need the id of this boot. Mount /proc.")
        }
        return id
    }
}

/// The failure of a store's call.
package struct StoreError: Error, Sendable, CustomStringConvertible {
    package enum Code: String, Sendable {
        /// Another process holds the database, or it is busy for too long: try again.
        case busy
        /// Workers of an older version use the database, so its schema cannot be changed: try again after they are
        /// stopped.
        case inUse = "in_use"
        /// The disk is full, or a file-system error occurred: try again after it is fixed.
        case input
        case diskFull = "disk_full"
        case readOnly = "read_only"
        case cannotOpen = "cannot_open"
        /// The file is damaged or is not a database.
        case corrupt
        /// The database was written by a newer version of this program.
        case newerSchema = "newer_schema"
        /// The request contradicts stored data, such as a second grant of one user.
        case conflict
        /// The database server cannot be reached, or is shutting down: try again.
        case unreachable
        /// The database server responds, but refuses until an administrator has fixed something.
        case refused
        /// Another program has changed, replaced or deleted the database's files in use: stored data may be lost, and
        /// the process must stop.
        case replaced
        /// The database was moved, and this one must not be used any more.
        case moved
        case closed
        /// A fault of this program.
        case fault
    }

    package var code: Code
    /// The failure, its place, and the advice to the operator.
    package var message: String
    /// The SQLite file in which one read reported damage that no check of the whole file has confirmed.
    package var suspectedFile: String?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }

    /// `true` if the same call may succeed later, after some time or after an administrator has fixed the cause.
    package var mayPass: Bool {
        switch code {
        case .busy, .inUse, .input, .diskFull, .readOnly, .unreachable, .refused: true
        case .cannotOpen, .corrupt, .newerSchema, .conflict, .replaced, .moved, .closed, .fault: false
        }
    }

    /// Creates the error for a row whose content cannot be parsed.
    ///
    /// The advice is not a backup: that would lose all users' refresh tokens that were rotated since.
    package init(damagedRow what: String) {
        self.init(
            .corrupt,
            "\(what) is damaged in the database; other rows can be used. Stop the workers, and correct or delete that row with the "
                + "database's own shell: the user of a deleted grant or session must sign in again. Do not put a backup in the "
                + "database's place for it: a backup lacks the refresh tokens that were rotated since."
        )
    }

    /// `true` if the error may be about one of several rows, so that the same call succeeds for the others.
    package var mayConcernOneRow: Bool {
        switch code {
        case .corrupt, .conflict, .fault: true
        case .busy, .inUse, .input, .diskFull, .readOnly, .cannotOpen, .newerSchema, .unreachable, .refused, .replaced,
            .moved, .closed:
            false
        }
    }

    /// `true` if the store must not be used any more: the database was moved, or its files were replaced.
    package var endsUse: Bool { code == .moved || code == .replaced }
}
