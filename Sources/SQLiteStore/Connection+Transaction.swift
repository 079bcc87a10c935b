import Store

extension Connection {
    private static let beginImmediate = Query("begin", "BEGIN IMMEDIATE")
    private static let beginDeferred = Query("begin reading", "BEGIN")
    private static let commitQuery = Query("commit", "COMMIT")
    private static let rollbackQuery = Query("roll back", "ROLLBACK")
    private static let trustKernel = Query("commit without the disk", "PRAGMA synchronous = NORMAL")
    private static let trustDisk = Query("commit to the disk", "PRAGMA synchronous = FULL")

    /// Starts a transaction that excludes every other writer.
    func begin() throws(StoreError) {
        try run(Self.beginImmediate)
    }

    /// Makes what was written durable; when that fails, nothing of it is written.
    func commit() throws(StoreError) {
        do {
            try run(Self.commitQuery)
        } catch {
            rollBack()
            throw error
        }
    }

    /// Takes back what was written, where SQLite has not done so itself (https://sqlite.org/lang_transaction.html).
    func rollBack() {
        guard isInTransaction else { return }
        do {
            try run(Self.rollbackQuery)
        } catch {
            // Nothing is lost: the error that led here is on its way to the caller, and a transaction that is still open
            // makes the next `begin` fail with an error of its own.
            return
        }
    }

    /// Runs `body` in one transaction that excludes every other writer.
    func write<Answer>(_ body: () throws(StoreError) -> Answer) throws(StoreError) -> Answer {
        try begin()
        let answer: Answer
        do {
            answer = try body()
        } catch {
            rollBack()
            throw error
        }
        try commit()
        return answer
    }

    /// Runs `body` as ``write(_:)`` does, but waits for no disk: for what a crash of the machine may undo.
    ///
    /// Leases are such: they end with the boot that they name. A process that is killed undoes nothing, since what it wrote is the
    /// kernel's by then, and the next durable commit makes this one durable as well (https://sqlite.org/pragma.html#pragma_synchronous).
    func writeForThisBoot<Answer>(_ body: () throws(StoreError) -> Answer) throws(StoreError) -> Answer {
        try execute(Self.trustKernel)
        let outcome: Result<Answer, StoreError>
        do {
            outcome = .success(try write(body))
        } catch {
            outcome = .failure(error)
        }
        try execute(Self.trustDisk)
        return try outcome.get()
    }

    /// Runs `body` on one unchanging picture of the database.
    func read<Answer>(_ body: () throws(StoreError) -> Answer) throws(StoreError) -> Answer {
        try run(Self.beginDeferred)
        defer { rollBack() }
        return try body()
    }
}
