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
