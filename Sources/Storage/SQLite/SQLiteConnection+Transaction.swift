extension SQLiteConnection {
    private static let beginImmediate = SQLiteQuery("begin", "BEGIN IMMEDIATE")
    private static let beginDeferred = SQLiteQuery("begin reading", "BEGIN")
    private static let commitQuery = SQLiteQuery("commit", "COMMIT")
    private static let rollbackQuery = SQLiteQuery("roll back", "ROLLBACK")

    /// Starts a transaction that excludes every other writer.
    func begin() throws(StoreError) {
        if let fullDisk { throw fullDisk }
        try run(Self.beginImmediate)
    }

    /// Makes the writes durable; if that fails, nothing is written.
    ///
    /// The check of the files comes last, and before the commit, while no other process can checkpoint.
    func commit() throws(StoreError) {
        do {
            try requireSameFiles()
            try run(Self.commitQuery)
        } catch {
            rollBack()
            throw error
        }
    }

    /// Takes back the writes, unless SQLite has done so itself (https://sqlite.org/lang_transaction.html).
    func rollBack() {
        guard isInTransaction else { return }
        do {
            try run(Self.rollbackQuery)
        } catch {
            // Nothing is lost: the original error is on its way to the caller, and a transaction that is still open
            // makes the next `begin` fail with an error of its own.
            return
        }
    }

    /// Runs `body` in one transaction that excludes every other writer.
    ///
    /// It throws ``StoreError/Code/moved`` if the database was moved, unless `evenIfMoved` is set.
    func write<Value>(
        evenIfMoved: Bool = false,
        _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try begin()
        let value: Value
        do {
            try readState(evenIfMoved: evenIfMoved)
            value = try body()
        } catch {
            rollBack()
            throw error
        }
        try commit()
        return value
    }

    /// Runs `body` in one transaction on the file of leases alone.
    func writeLeases(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try run(Self.beginDeferred)
        do {
            try body()
            try run(Self.commitQuery)
        } catch {
            rollBack()
            throw error
        }
    }

    /// Runs `body` on one unchanging snapshot of the database.
    func read<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
        try run(Self.beginDeferred)
        defer { rollBack() }
        return try body()
    }
}
