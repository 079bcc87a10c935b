private import Glibc

/// One step of the schema, from one version to the next.
///
/// A later version adds a step. Example:
///
///     static let shoeSizes = SchemaStep(isAdditive: true) { dialect in
///         "ALTER TABLE refresh_worker.users ADD COLUMN shoe_size \(dialect.name(of: .integer));"
///     }
struct SchemaStep: Sendable {
    /// `true` if programs that lack the step can go on using the database, which needs three things.
    ///
    /// - It only adds tables, columns that need no value, and indexes.
    /// - What an older program writes is right for a newer one. So there is no new code in a column that both read, such
    ///   as a state, and no column that must change with an older one.
    /// - It is done within a second on the largest database. So it neither fills nor indexes a table of grants.
    let isAdditive: Bool
    /// `true` if a program that has the step can also use a database that lacks it. A dump that holds a lock, or tables
    /// of another owner, then keeps no worker from starting.
    let canWait: Bool
    private let forSQLite: String
    private let forPostgres: String

    init(isAdditive: Bool = false, canWait: Bool = false, _ text: (SQLDialect) -> String) {
        self.isAdditive = isAdditive
        self.canWait = canWait
        forSQLite = SQLQuery("", sql: text(.sqlite)).textForSQLite
        forPostgres = text(.postgres)
    }

    /// All steps, oldest first. The schema's version is their number. The first one is made from the lists of the
    /// tables. A released step is never changed: a new one is added.
    static let all =
        [
            SchemaStep { dialect in
                (common(dialect) + (dialect == .sqlite ? sqlite : postgres)).joined(separator: "\n")
            },
            keyOfSuccesses,
        ] + next

    /// Under a publication `FOR ALL TABLES` PostgreSQL refuses to delete from a table without a key. A random key needs
    /// no sequence, which a logical upgrade would leave behind. It rewrites the rows of some seconds.
    private static let keyOfSuccesses = SchemaStep(isAdditive: true, canWait: true) { dialect in
        switch dialect {
        case .sqlite: ""
        case .postgres:
            """
            ALTER TABLE refresh_worker.client_successes ADD COLUMN id uuid PRIMARY KEY DEFAULT gen_random_uuid();
            """
        }
    }

    #if DEBUG
        /// The steps of a later version, for the scenarios of an upgrade: `additive` and `breaking`, with commas.
        private static let next: [SchemaStep] = {
            guard let list = unsafe getenv("NEXT_SCHEMA_STEPS") else { return [] }
            return unsafe String(cString: list).split(separator: ",").enumerated().map { number, kind in
                SchemaStep(isAdditive: kind == "additive") { dialect in
                    "ALTER TABLE refresh_worker.grants ADD COLUMN next_\(number) \(dialect.name(of: .integer));"
                }
            }
        }()
    #else
        private static let next: [SchemaStep] = []
    #endif

    func statements(for dialect: SQLDialect) -> String { dialect == .sqlite ? forSQLite : forPostgres }

    /// Returns the name of the note with the oldest version whose programs can use a database of this version. Only the
    /// database can tell an older program.
    static func noteOfOldestUser(of version: Int) -> SQLValue { .text("schema_\(version)_usable_from") }

    /// Returns the statement that writes that note after the last of `steps`, unless only its own programs can use it.
    static func noteOldestUser(after steps: ArraySlice<SchemaStep>) -> SQLStatement? {
        let additive = steps.reversed().prefix(while: \.isAdditive).count
        guard additive > 0 else { return nil }
        return SQLStatement(.writeMeta, noteOfOldestUser(of: steps.count), .text("\(steps.count - additive)"))
    }

    private static func index(_ name: String, _ columns: String, unique: Bool = false, where condition: String? = nil)
        -> String
    {
        "CREATE \(unique ? "UNIQUE " : "")INDEX \(name) ON refresh_worker.\(columns)"
            + (condition.map { " WHERE \($0)" } ?? "") + ";"
    }

    private static func common(_ dialect: SQLDialect) -> [String] {
        users(dialect) + grants(dialect) + notices(dialect) + [
            SQLQuery.clients.create(in: dialect, settings: "fillfactor = 10"),
            SQLQuery.workers.create(in: dialect, settings: "fillfactor = 10"),
            SQLQuery.identifiers.create(in: dialect),
            index("identifiers_by_time", "identifiers (at)"),
            SQLQuery.meta.create(in: dialect),
        ]
    }

    private static func users(_ dialect: SQLDialect) -> [String] {
        [
            SQLQuery.accounts.create(in: dialect),
            User.table.create(in: dialect),
            index("users_by_email", "users (lower(email))", where: "email IS NOT NULL"),
            index("users_by_deletion", "users (deleted_until)", where: "deleted_until IS NOT NULL"),
            Session.table.create(in: dialect),
            index("sessions_by_end", "sessions (expires_at)"),
            index("sessions_with_successor", "sessions (successor_until)", where: "successor IS NOT NULL"),
        ]
    }

    /// An index costs an update on SQLite only if the statement names a column of it.
    ///
    /// `grants_due` changes with every refresh, and `grants_by_use` once a day. The columns of the others change seldom
    /// (``SQLiteGrantRow``). The due index is divided by client, so that one client's overdue grants do not delay
    /// another's.
    private static func grants(_ dialect: SQLDialect) -> [String] {
        [
            (dialect == .sqlite ? Grant.table : PostgresGrantRow.grants).create(
                in: dialect,
                with: [
                    Grant.revision(in: dialect), Grant.constraints,
                    "FOREIGN KEY (user_id) REFERENCES refresh_worker.users (user_id)",
                ],
                settings: "fillfactor = 50, \(earlyVacuum)",
                hasRowNumbers: true
            ),
            index("grants_by_use", "grants (used_on)", where: "state IN (\(GrantState.connectedList))"),
            // Two connections of one user never share an account, because a revocation ends both.
            index(
                "grants_by_account",
                "grants (google_user_id, user_id)",
                unique: true,
                where: "google_user_id IS NOT NULL"
            ),
            index("grants_by_connection", "grants (connection)", where: "connection <> 'default'"),
            index("grants_by_email", "grants (lower(email))", where: "email IS NOT NULL"),
            index("grants_by_ending", "grants (refresh_expires_at)", where: "refresh_expires_at IS NOT NULL"),
            index("grants_by_prefix_mark", "grants (refresh_prefix_mark)", where: "refresh_prefix_mark IS NOT NULL"),
            index("grants_by_digest_mark", "grants (refresh_digest_mark)", where: "refresh_digest_mark IS NOT NULL"),
            index(
                "grants_with_former_tokens",
                "grants (former_tokens_until)",
                where: "former_tokens_until IS NOT NULL"
            ),
            SQLQuery.grantCounts.create(in: dialect, settings: "fillfactor = 10"),
            GrantEvent.table.create(in: dialect),
            index("grant_events_of_losses", "grant_events (at)", where: "consented_at IS NOT NULL"),
        ]
    }

    /// The outbox.
    ///
    /// `notices` does not refer to a grant: a notice outlives the grant of a deleted user. For each user only the
    /// oldest pending notice has a `next_try_at`, so that the index on it is the queue. A replay takes all notices of a
    /// user at a time.
    private static func notices(_ dialect: SQLDialect) -> [String] {
        [
            Notice.table.create(
                in: dialect,
                with: [
                    "CHECK (accepted_at IS NULL OR given_up_at IS NULL)",
                    "CHECK (next_try_at IS NULL OR (accepted_at IS NULL AND given_up_at IS NULL))",
                ]
            ),
            index("notices_due", "notices (next_try_at, user_id)", where: "next_try_at IS NOT NULL"),
            index(
                "notices_settled",
                "notices (coalesce(accepted_at, given_up_at))",
                where: "accepted_at IS NOT NULL OR given_up_at IS NOT NULL"
            ),
            index("notices_by_time", "notices (at)"),
        ]
    }

    /// Leases have a file of their own (``LeaseFile``).
    private static let sqlite = [
        // SQLite adds the id to each entry.
        index("grants_due", "grants (client_id, due_at)", where: "due_at IS NOT NULL"),
        index("grants_by_state", "grants (state)"),
        index("grants_by_key", "grants (refresh_key, access_key, binding_key)"),
        """
        CREATE TRIGGER grants_inserted AFTER INSERT ON grants BEGIN
            INSERT INTO grant_counts VALUES (new.state, 1) ON CONFLICT (state) DO UPDATE SET grants = grants + 1;
        END;
        CREATE TRIGGER grants_moved AFTER UPDATE OF state ON grants WHEN old.state <> new.state BEGIN
            UPDATE grant_counts SET grants = grants - 1 WHERE state = old.state;
            INSERT INTO grant_counts VALUES (new.state, 1) ON CONFLICT (state) DO UPDATE SET grants = grants + 1;
        END;
        CREATE TRIGGER grants_deleted AFTER DELETE ON grants BEGIN
            UPDATE grant_counts SET grants = grants - 1 WHERE state = old.state;
        END;
        """,
    ]

    /// Autovacuum starts early for the tables of grants, since a fifth of a large table would be too late.
    private static let earlyVacuum = "autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1"

    /// A grant has a row in two tables.
    ///
    /// `grant_schedule` is narrow and has the columns that change with each claim and refresh. Only `due_at` of them is
    /// indexed, and a claim does not change it. `grants` is wide, and of its indexed columns a refresh changes only
    /// `used_on`, once a day. So most updates are heap-only: they do not touch the indexes, and their dead rows are
    /// removed page by page (https://www.postgresql.org/docs/15/storage-hot.html).
    ///
    /// The fill factors leave room for that, also if all rows of a page are refreshed at once: for a second version of
    /// each row of `grants`, and for the two of a claim and its result in `grant_schedule`. Copies and imports write
    /// rows in the order of their ids, which is that of their due times, so neighbours are refreshed at once.
    private static let postgres = [
        // Sealed bytes cannot be compressed: trying would only cost time.
        "ALTER TABLE refresh_worker.grants ALTER COLUMN refresh_token SET STORAGE EXTERNAL;",
        "ALTER TABLE refresh_worker.grants ALTER COLUMN access_token SET STORAGE EXTERNAL;",
        index("grants_retrying", "grants (client_id)", where: "state = '\(GrantState.retrying.rawValue)'"),
        index("grants_by_state", "grants (state, id)", where: "state <> '\(GrantState.active.rawValue)'"),
        PostgresGrantRow.schedule.create(
            in: .postgres,
            with: ["lease_claim", "lease_epoch", "lease_until"].map {
                "CHECK ((lease_owner IS NULL) = (\($0) IS NULL))"
            },
            settings: "fillfactor = 35, \(earlyVacuum)"
        ),
        index("grants_due", "grant_schedule (client_id, due_at, grant_id)", where: "due_at IS NOT NULL"),
        // Plain refreshes that the health of their client does not contain yet: a row for each batch, for a few
        // seconds.
        """
        CREATE TABLE refresh_worker.client_successes (
            client_id text COLLATE "C" NOT NULL,
            at bigint NOT NULL,
            successes bigint NOT NULL CHECK (successes > 0),
            client_secret bigint NOT NULL
        ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
        """,
        useCheck,
    ]
}
