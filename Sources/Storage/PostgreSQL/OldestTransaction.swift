/// The transaction that keeps VACUUM from removing the most dead rows of a PostgreSQL database.
package struct OldestTransaction: Hashable, Sendable {
    /// The session, prepared transaction, replication slot or standby that has it, for people.
    package var holder: String
    /// The time since its beginning, which a server does not know of a replication slot or a standby.
    package var age: Duration?
    /// Transactions that began since.
    package var transactions: Int

    package init(holder: String, age: Duration?, transactions: Int) {
        self.holder = holder
        self.age = age
        self.transactions = transactions
    }

    /// Longer than a dump of a usual database.
    static let tolerableAge: Duration = .seconds(3_600)
    /// A worker makes about 30 for 1,000 refreshes.
    static let tolerableTransactions = 1_000_000

    /// `true` if a person should find out why it is open.
    package var isForgotten: Bool {
        guard let age else { return transactions > Self.tolerableTransactions }
        return age > Self.tolerableAge
    }
}

extension OldestTransaction {
    /// A role without `pg_read_all_stats` sees only its own sessions and no standby.
    ///
    /// An open transaction that has neither a snapshot nor a number keeps no row.
    fileprivate static let query = SQLQuery(
        "oldest transaction",
        sql: """
            SELECT holder, seconds, transactions FROM (
                SELECT format('session %s of %s (%s)', pid, usename, concat_ws(', ', nullif(application_name, ''), state))
                        AS holder,
                    extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds,
                    greatest(age(backend_xmin), age(backend_xid))::bigint AS transactions
                FROM pg_catalog.pg_stat_activity
                WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
                UNION ALL
                SELECT format('prepared transaction %s of %s', gid, owner),
                    extract(epoch FROM clock_timestamp() - prepared)::bigint, age(transaction)::bigint
                FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()
                UNION ALL
                SELECT format('replication slot %s', slot_name), NULL, age(xmin)::bigint
                FROM pg_catalog.pg_replication_slots
                UNION ALL
                SELECT format('standby %s (hot_standby_feedback)', application_name), NULL, age(backend_xmin)::bigint
                FROM pg_catalog.pg_stat_replication
            ) AS holders
            WHERE transactions IS NOT NULL ORDER BY transactions DESC, seconds DESC NULLS LAST LIMIT 1
            """
    )
}

extension PostgresStore {
    package func oldestTransaction() async throws -> OldestTransaction? {
        try await first(SQLStatement(OldestTransaction.query)) { row in
            OldestTransaction(
                holder: row.text(),
                age: row.optionalInteger().map { .seconds($0) },
                transactions: row.count()
            )
        }
    }
}
