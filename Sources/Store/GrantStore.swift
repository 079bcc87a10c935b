package import Clocks
package import Secrets

/// What every store keeps: grants, their history, the health of each client, and which workers live.
///
/// A store only reads and writes. What an answer makes of a grant is decided by whoever passes the body of ``transact(_:)``,
/// so that the decision sees what is stored at that instant, and so that all stores decide alike.
package protocol GrantStore: Sendable {
    /// The clock of this store's leases.
    func leaseTime() async throws -> LeaseTime
    /// Names the boot of this machine, to which every ``BootInstant`` of its boot clock belongs.
    var bootID: String { get }

    /// Runs `body` in one transaction that excludes every other writer, in this process and in others. What it wrote is
    /// durable when this returns; when it throws, nothing of it is written.
    func transact<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result

    /// Runs `body` like ``transact(_:)``, ahead of requests of strangers where the store can: it stores answers that may hold
    /// rotated tokens.
    func storeResults<Result: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Result
    ) async throws -> Result

    /// Takes the lease of each of `ids` that is due by `dueBy` (`nil`: whenever it is due) and not leased to another, in one
    /// transaction. Grants that another worker has or has done are left out of the answer.
    func claim(_ ids: [GrantID], dueBy: Timestamp?, owner: String, for span: Duration) async throws -> [Grant]

    /// Prolongs leases that still stand under the same claim; answers the ids of those.
    func renew(_ leases: [GrantID: Int64], for span: Duration) async throws -> Set<GrantID>

    /// Gives leases back without having called.
    func release(_ leases: [GrantID: Int64]) async throws

    /// The client ids of all grants that have a due time, in the order of their names.
    func clientsWithDueTimes() async throws -> [String]

    /// The next grants of one client due by `limit`, in the order of their due times, after a cursor.
    func due(ofClient clientID: String, by limit: Timestamp, after cursor: DueEntry?, atMost count: Int) async throws
        -> [DueEntry]

    /// Makes grants of a client due by `dueBy` that are being retried for a reason that passes, and do not await a second opinion:
    /// at most `count` after `cursor` in the order of their ids, in a transaction of its own.
    ///
    /// Returns the id to go on after, or `nil` at the end.
    func hastenRetries(
        ofClient clientID: String,
        dueBy: Timestamp,
        after cursor: GrantID?,
        atMost count: Int
    ) async throws -> GrantID?

    func grant(_ id: GrantID) async throws -> Grant?
    func grant(ofUser userID: String) async throws -> Grant?

    /// One page of all grants in the order of their ids.
    func grants(after id: GrantID?, in state: GrantState?, atMost count: Int) async throws -> [Grant]

    /// The history of one grant, the latest first.
    func events(of id: GrantID, atMost count: Int) async throws -> [GrantEvent]

    /// How many grants there are in each state, how many are due, and which end soon.
    func census(at now: Timestamp, refreshTokensEndingBefore end: Timestamp, idleSince: Timestamp) async throws
        -> Census

    /// Which keys the stored tokens are sealed with, and how many tokens each.
    func keysInUse() async throws -> [KeyID: Int]

    /// Makes every grant whose access token was stored, or that was tried last, later than `now` due at `now`, spread over a
    /// minute: a clock that was ahead said so, and neither expiry nor due time can be believed. Answers how many there were.
    ///
    /// A grant that awaits a second opinion is left alone: asked before its time, that opinion would be no second one.
    /// Pending notices are due at once.
    func rescheduleGrantsStoredAfter(_ now: Timestamp) async throws -> Int

    /// Stores what this worker reports, and answers what all workers that still live reported last.
    func report(_ worker: WorkerReport) async throws -> [WorkerReport]
    func liveWorkers() async throws -> [WorkerReport]
    func forgetWorker(_ id: String) async throws

    /// A short text that the store keeps under a name; `nil` if there is none.
    func note(_ name: String) async throws -> String?

    /// Replaces a note if it still is what the caller has read. Returns `false` if it is not.
    func replaceNote(_ name: String, _ former: String?, with text: String) async throws -> Bool

    /// Throws where the store cannot be used now: it cannot be read, or it is a server that says that it takes no writes.
    func checkUsable() async throws

    /// The health of each client, as last stored.
    func clientHealth() async throws -> [String: [UInt8]]

    /// Returns the reading of both clocks that was stored last, so that a step between two runs can be found.
    func clockReading() async throws -> ClockReading?

    /// Stores a reading of both clocks.
    func record(_ reading: ClockReading) async throws

    /// Returns the incidents since the last call, each once.
    func takeIncidents() -> [StoreIncident]

    /// Closes files and connections; the store is not used afterwards.
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

/// What a worker says of itself while it lives.
package struct WorkerReport: Hashable, Sendable {
    /// A report older than this is a dead worker's.
    package static let lifetime: Duration = .seconds(30)

    package var id: String
    /// Every key that it can open tokens with.
    package var keyIDs: [KeyID]
    package var sealingKeyID: KeyID
    /// Whether it asks Google: all that do share the pace of a client id and the grants that are due.
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
    /// The boot's name, or what to do where it cannot be read.
    package static func require() throws(StoreError) -> String {
        guard let id = read() else {
            throw StoreError(.cannotOpen, "\(path) cannot be read: leases need the id of this boot. Mount /proc.")
        }
        return id
    }
}

/// Why a store could not do what it was asked.
package struct StoreError: Error, Sendable, CustomStringConvertible {
    package enum Code: String, Sendable {
        /// Another process holds the database, or it is busy beyond patience: try again.
        case busy
        /// Workers of an older version use the database, so that its schema cannot be changed: try again when they are stopped.
        case inUse = "in_use"
        /// No room, or a file-system error: try again when it is mended.
        case input
        case diskFull = "disk_full"
        case readOnly = "read_only"
        case cannotOpen = "cannot_open"
        /// The file is damaged or is no database.
        case corrupt
        /// The database was written by a newer version of this program.
        case newerSchema = "newer_schema"
        /// What was asked contradicts what is stored: a second grant of one user.
        case conflict
        /// The database server is not to be reached, or goes down: try again.
        case unreachable
        /// The database server answers, and will not do what is asked until an administrator has mended something.
        case refused
        /// Something else has changed, replaced or deleted the database's files while they are in use: what is stored there may
        /// be lost, and the process must stop.
        case replaced
        /// Everything was copied to another database, and this one is not to be used any more.
        case moved
        case closed
        /// A fault of this program.
        case fault
    }

    package var code: Code
    /// What happened, where, and what to do about it.
    package var message: String
    /// The SQLite file in which one read reported damage that no check of the whole file has confirmed.
    package var suspectedFile: String?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }

    /// Whether the same call may succeed later, when time or an administrator has mended what is in its way.
    package var mayPass: Bool {
        switch code {
        case .busy, .inUse, .input, .diskFull, .readOnly, .unreachable, .refused: true
        case .cannotOpen, .corrupt, .newerSchema, .conflict, .replaced, .moved, .closed, .fault: false
        }
    }

    /// A row whose content is not understood.
    ///
    /// The advice is not a backup: that would lose every refresh token that was rotated since, of all users.
    package init(damagedRow what: String) {
        self.init(
            .corrupt,
            "\(what) is damaged in the database; other rows can be used. Stop the workers, and correct or delete that row with the "
                + "database's own shell: the user of a deleted grant or session must sign in again. Do not put a backup in the "
                + "database's place for it: a backup lacks the refresh tokens that were rotated since."
        )
    }

    /// Whether the error may be about one of several rows, so that the same call succeeds for the others.
    package var mayConcernOneRow: Bool {
        switch code {
        case .corrupt, .conflict, .fault: true
        case .busy, .inUse, .input, .diskFull, .readOnly, .cannotOpen, .newerSchema, .unreachable, .refused, .replaced,
            .moved, .closed:
            false
        }
    }

    /// Whether nobody may go on with the store: everything in it was copied elsewhere, or its files were replaced.
    package var endsUse: Bool { code == .moved || code == .replaced }
}
