package import Base

/// A store whose records can be copied out and in: page by page, in an order that is the same in every store.
///
/// Leases, live workers and clock readings belong to one store at one time, and are not copied.
package protocol StoreArchive: AccountStore {
    func count(of kind: ArchiveRecord.Kind) async throws -> Int

    /// Returns the records of a kind after a key, sorted by key.
    func records(of kind: ArchiveRecord.Kind, after key: ArchiveRecord.Key?, atMost count: Int) async throws
        -> [ArchiveRecord]

    /// Returns the greatest key of a kind, which shows how far a copy has come.
    func lastKey(of kind: ArchiveRecord.Kind) async throws -> ArchiveRecord.Key?

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

    /// The location to which the database was moved; `nil` if it was not moved.
    ///
    /// A moved database must not be used any more, or grants would be refreshed in two databases.
    var movedTo: String? { get async throws }

    /// Returns the remaining time of the last lease in this store; `nil` if there is none.
    func remainingLease() async throws -> Duration?

    /// Marks the database as moved to a location; `nil` removes the mark.
    ///
    /// While the mark exists, claims and transactions throw ``StoreError/Code/moved``.
    func markMoved(to location: String?) async throws
}

extension StoreError {
    /// Creates the error for any further use of `database`, which was copied to `location`.
    package init(moved database: String, to location: String) {
        self.init(
            .moved,
            """
            \(database) was moved to \(location), and can only be read: name the new database with --database or \
            REFRESH_WORKER_DATABASE. To go back, copy the new database into an empty one (refresh-worker store copy) and name \
            that. The moved database can be copied as well; it has its contents of the time of the move
            """
        )
    }
}

/// One record of a store, without the parts that only make sense in that store.
package enum ArchiveRecord: Hashable, Sendable {
    /// The kinds of records, in an order in which each refers only to earlier ones.
    package enum Kind: String, CaseIterable, Sendable {
        case user
        case grant
        case event
        case session
        case clientHealth = "client_health"
        case securityEvent = "security_event"
        case notice
    }

    /// The key that orders the records of a kind: numbers by size, texts and bytes by their bytes.
    package enum Key: Hashable, Sendable {
        case number(Int64)
        case text(String)
        case bytes([UInt8])
    }

    case user(User)
    case grant(Grant)
    case event(sequence: Int64, GrantEvent)
    case session(Session)
    /// Bytes that only the engine reads; it drops the parts that depend on the clock of the former store.
    case clientHealth(clientID: String, [UInt8])
    case securityEvent(identifier: String, at: Timestamp)
    case notice(ArchivedNotice)

    package var kind: Kind {
        switch self {
        case .user: .user
        case .grant: .grant
        case .event: .event
        case .session: .session
        case .clientHealth: .clientHealth
        case .securityEvent: .securityEvent
        case .notice: .notice
        }
    }

    package var key: Key {
        switch self {
        case .user(let user): .text(user.id)
        case .grant(let grant): .number(grant.id.rawValue)
        case .event(let sequence, _): .number(sequence)
        case .session(let session): .bytes(session.id.bytes)
        case .clientHealth(let clientID, _): .text(clientID)
        case .securityEvent(let identifier, _): .text(identifier)
        case .notice(let notice): .number(notice.notice.sequence)
        }
    }

    /// Creates the record of a grant without its lease, which is valid only in one store at one time.
    package init(_ grant: Grant) {
        var grant = grant
        grant.lease = nil
        self = .grant(grant)
    }
}

/// A notice with the state of its delivery.
package struct ArchivedNotice: Hashable, Sendable {
    package var notice: Notice
    /// The time of the next delivery; `nil` if it waits for another notice of its user, or is finished.
    package var nextTryAt: Timestamp?
    package var acceptedAt: Timestamp?
    package var givenUpAt: Timestamp?
}
