/// A table whose rows get their numbers from a sequence.
///
/// A logical upgrade (logical replication, or the blue/green upgrade of a managed service) copies rows, but leaves the
/// sequences where they were. The next row would get a number that another has (SQLSTATE 23505).
struct SequenceTable {
    static let all = [SequenceTable(name: "grant_events"), SequenceTable(name: "notices")]

    let name: String

    private var table: String { "refresh_worker.\(name)" }
    /// The name that PostgreSQL gives the sequence of an identity column.
    private var sequence: String { "refresh_worker.\(name)_seq_seq" }

    /// The statement that moves the sequence past all rows.
    var move: String { "SELECT setval('\(sequence)', coalesce((SELECT max(seq) FROM \(table)), 0) + 1, false);" }

    /// Returns a row if the next number is that of a row, or a lower one.
    var isBehind: SQLQuery { SQLQuery("is the sequence of \(name) behind", sql: "SELECT rows.last \(behind)") }
    /// Moves the sequence if it is behind, and returns a row if it was.
    var moveIfBehind: SQLQuery {
        SQLQuery("move sequence of \(name)", sql: "SELECT setval('\(sequence)', rows.last + 1, false) \(behind)")
    }

    private var behind: String {
        """
        FROM (SELECT max(seq) AS last FROM \(table)) AS rows, \(sequence) AS numbers
        WHERE rows.last >= CASE WHEN numbers.is_called THEN numbers.last_value + 1 ELSE numbers.last_value END
        """
    }

    /// Returns the table whose key a server's message about a duplicate names.
    static func withKey(in message: String) -> SequenceTable? { all.first { message.contains("\($0.name)_pkey") } }
}

extension PostgresStore {
    /// Moves the sequences that are behind, and returns `true` if one was.
    ///
    /// The lock, which keeps others from taking numbers in between, is taken only then.
    func moveSequences(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError) -> Bool {
        var check = StatementBatch(queryUntil: deadline)
        for table in SequenceTable.all { check.add(table.isBehind) }
        let isAnyBehind = try connection.run(check, until: deadline).dropFirst().contains { $0.rowCount > 0 }
        guard isAnyBehind else { return false }
        var batch = StatementBatch(until: deadline)
        addUseCheck(to: &batch, on: connection)
        batch.addWriterLock()
        let first = batch.entries.count
        for table in SequenceTable.all { batch.add(table.moveIfBehind) }
        let results = try commit(batch, isRepeatable: true, on: connection, until: deadline).dropFirst(first)
        let moved = zip(SequenceTable.all, results).filter { $1.rowCount > 0 }.map(\.0.name)
        guard !moved.isEmpty else { return false }
        incidents.record(.sequencesMoved(of: moved, in: connection.database))
        return true
    }

    /// Moves the sequences if they are behind.
    ///
    /// A role that cannot do so, and a server that does not accept writes, keep no command from reading.
    func moveSequencesIfPossible(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError) {
        do throws(StoreError) {
            _ = try moveSequences(connection, until: deadline)
        } catch {
            guard !error.losesConnection else { throw error }
        }
    }

    /// Returns the failure of a transaction, marked as repaired if sequences that were behind have caused it.
    func repaired(_ failure: StoreError, on connection: PostgresConnection, until deadline: CallDeadline)
        throws(StoreError) -> StoreError
    {
        guard failure.sqlState == "23505", !failure.losesConnection else { return failure }
        var failure = failure
        do throws(StoreError) {
            failure.isRepaired = try moveSequences(connection, until: deadline)
        } catch {
            // The failure itself says what the owner of the tables can do.
            if error.losesConnection { return failure.losingConnection }
        }
        return failure
    }
}

extension StoreIncident {
    fileprivate static func sequencesMoved(of tables: [String], in database: String) -> StoreIncident {
        StoreIncident(
            kind: .sequencesMoved,
            text: """
                the sequences of \(tables.joined(separator: ", ")) in \(database) were behind their rows, as after a \
                logical upgrade, and were moved. Nothing is lost. If nobody has upgraded the database, find out what \
                changes it
                """
        )
    }
}
