/// A store that everything can be copied out of, and into: a page of records at a time, in an order that is the same in
/// every store.
///
/// Leases, live workers and readings of clocks belong to one store and one moment, and are no part of it.
package protocol StoreArchive: AccountStore {
    func count(of kind: ArchiveRecord.Kind) async throws -> Int

    /// The records of a kind after a key, in the order of their keys.
    func records(of kind: ArchiveRecord.Kind, after key: ArchiveRecord.Key?, atMost count: Int) async throws
        -> [ArchiveRecord]

    /// The greatest key of a kind: how far a copy has come.
    func lastKey(of kind: ArchiveRecord.Kind) async throws -> ArchiveRecord.Key?

    /// Whether a copy into this store was begun and not finished: what it holds is a part of something.
    var isReceiving: Bool { get async throws }

    /// Notes, in a store that holds no record at all, that it receives a copy; in any other this throws
    /// ``StoreError/Code/conflict``, but where it was noted before.
    func beginReceiving() async throws

    /// Adds records of one kind under the keys that they have, in one transaction.
    func receive(_ records: [ArchiveRecord]) async throws

    /// Notes that the copy is whole, and so that this is where its records are at home, whatever was noted before.
    func endReceiving() async throws

    /// Where everything was copied to, in words, if it was: then nobody may go on with it here, or grants would be refreshed in
    /// two places.
    var movedTo: String? { get async throws }

    /// How long the last lease of this store has still to run; `nil` when there is none.
    func remainingLease() async throws -> Duration?

    /// Notes that everything was copied there; `nil` takes the note back.
    ///
    /// As long as it stands, claims and transactions throw ``StoreError/Code/moved``.
    func noteMove(to place: String?) async throws
}

extension StoreError {
    /// Everything was copied from `database` to `place`, and who would go on in the former is kept from it.
    package init(moved database: String, to place: String) {
        self.init(
            .moved,
            """
            \(database) was moved to \(place), and can only be read: name the new place with --database or \
            REFRESH_WORKER_DATABASE. To go back, copy the new place into an empty database (refresh-worker store copy) and name \
            that one; this one can be copied as well, and is what it was when it was moved
            """
        )
    }
}
