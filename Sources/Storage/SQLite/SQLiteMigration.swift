/// One step of the schema, from one version to the next.
struct SQLiteMigration: Sendable {
    let statements: String
}

extension SQLiteMigration {
    /// All steps, oldest first; the schema's version is their number.
    ///
    /// A released step is never changed: a new one is added.
    static let all: [SQLiteMigration] = [firstSchema, revisions, usersOfMoves]

    /// The first schema.
    ///
    /// The ids of grants are ordered by phase: grants that are due together are close together.
    ///
    /// An index costs an update only if the statement names a column of it. `grants_due` changes with every refresh,
    /// and `grants_by_use` once a day; the columns of the others change seldom (``GrantRow``). The due index is divided
    /// by client, so that one client's overdue grants do not delay another's. Leases have a file of their own
    /// (``LeaseFile``).
    private static let firstSchema = SQLiteMigration(statements: [users, grants, counts, notices, others].joined())

    /// Counts the changes of each grant's row, so that a commit recognises the row that its claim has read.
    private static let revisions = SQLiteMigration(
        statements: "ALTER TABLE grants ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;"
    )

    /// The end of the backend's tokens that were accepted for a user, and if the user is known only from a sign-in.
    private static let usersOfMoves = SQLiteMigration(
        statements: """
            ALTER TABLE users ADD COLUMN tokens_until INTEGER;
            ALTER TABLE users ADD COLUMN is_from_sign_in INTEGER NOT NULL DEFAULT 0 CHECK (is_from_sign_in IN (0, 1));
            """
    )

    private static let users = """
        CREATE TABLE users (
            user_id TEXT PRIMARY KEY NOT NULL,
            created_at INTEGER NOT NULL,
            email TEXT,
            email_is_verified INTEGER CHECK (email_is_verified IN (0, 1)),
            name TEXT,
            picture TEXT,
            google_user_id TEXT,
            last_login_at INTEGER,
            is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),
            deleted_until INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX users_by_account ON users (google_user_id) WHERE google_user_id IS NOT NULL;
        CREATE INDEX users_by_email ON users (lower(email)) WHERE email IS NOT NULL;
        CREATE INDEX users_by_deletion ON users (deleted_until) WHERE deleted_until IS NOT NULL;

        -- A session remembers every token that may still come, and when its successor is wiped.
        CREATE TABLE sessions (
            id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
            user_id TEXT NOT NULL REFERENCES users (user_id),
            created_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            current_hash BLOB NOT NULL,
            token_history BLOB,
            successor BLOB,
            successor_until INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX sessions_by_user ON sessions (user_id);
        CREATE INDEX sessions_by_end ON sessions (expires_at);
        CREATE INDEX sessions_with_successor ON sessions (successor_until) WHERE successor IS NOT NULL;

        """

    private static let grants = """
        CREATE TABLE grants (
            \(SQLiteGrantRow.definitions),
            \(GrantColumn.constraints),
            FOREIGN KEY (user_id) REFERENCES users (user_id)
        ) STRICT;
        CREATE INDEX grants_due ON grants (client_id, due_at, id) WHERE due_at IS NOT NULL;
        CREATE INDEX grants_by_use ON grants (used_on)
            WHERE state IN (\(GrantState.connectedList));
        CREATE INDEX grants_by_state ON grants (state);
        CREATE INDEX grants_by_account ON grants (google_user_id) WHERE google_user_id IS NOT NULL;
        CREATE INDEX grants_by_email ON grants (lower(email)) WHERE email IS NOT NULL;
        CREATE INDEX grants_by_ending ON grants (refresh_expires_at) WHERE refresh_expires_at IS NOT NULL;
        CREATE INDEX grants_by_key ON grants (refresh_key, access_key);
        CREATE INDEX grants_by_prefix_mark ON grants (refresh_prefix_mark) WHERE refresh_prefix_mark IS NOT NULL;
        CREATE INDEX grants_by_digest_mark ON grants (refresh_digest_mark) WHERE refresh_digest_mark IS NOT NULL;
        CREATE INDEX grants_with_former_tokens ON grants (former_tokens_until) WHERE former_tokens_until IS NOT NULL;

        CREATE TABLE grant_events (
            seq INTEGER PRIMARY KEY,
            grant_id INTEGER NOT NULL REFERENCES grants (id),
            at INTEGER NOT NULL,
            kind TEXT NOT NULL,
            from_state TEXT,
            to_state TEXT NOT NULL,
            reason TEXT NOT NULL,
            generation INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX grant_events_by_grant ON grant_events (grant_id, seq);

        """

    /// The number of grants in each state: counting ten million at each scrape of the metrics would take a second.
    private static let counts = """
        CREATE TABLE grant_counts (
            state TEXT PRIMARY KEY NOT NULL,
            grants INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
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

        """

    /// The outbox.
    ///
    /// `notices` does not refer to a grant: a notice outlives the grant of a deleted user. A notice is about a user;
    /// its kind says whether it is about a grant or a session too. For each user only the oldest pending notice has a
    /// `next_try_at`, so that the index on it is the queue; a replay takes all notices of a user at a time.
    /// AUTOINCREMENT, because no number may be used again.
    private static let notices = """
        CREATE TABLE notices (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            nonce INTEGER NOT NULL CHECK (nonce BETWEEN 0 AND 4294967295),
            kind TEXT NOT NULL,
            grant_id INTEGER,
            user_id TEXT NOT NULL,
            at INTEGER NOT NULL,
            from_state TEXT,
            to_state TEXT,
            reason TEXT,
            lost_scopes TEXT,
            granted_scopes TEXT,
            session_id TEXT,
            pending_since INTEGER NOT NULL,
            attempts INTEGER NOT NULL CHECK (attempts >= 0),
            next_try_at INTEGER,
            accepted_at INTEGER,
            given_up_at INTEGER,
            CHECK (accepted_at IS NULL OR given_up_at IS NULL),
            CHECK (next_try_at IS NULL OR (accepted_at IS NULL AND given_up_at IS NULL))
        ) STRICT;
        CREATE INDEX notices_due ON notices (next_try_at, seq) WHERE next_try_at IS NOT NULL;
        CREATE INDEX notices_by_user ON notices (user_id, seq);
        CREATE INDEX notices_settled ON notices (coalesce(accepted_at, given_up_at))
            WHERE accepted_at IS NOT NULL OR given_up_at IS NOT NULL;
        CREATE INDEX notices_by_time ON notices (at);

        """

    private static let others = """
        CREATE TABLE clients (
            client_id TEXT PRIMARY KEY NOT NULL,
            health BLOB NOT NULL,
            updated_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE workers (
            worker_id TEXT PRIMARY KEY NOT NULL,
            epoch TEXT NOT NULL,
            heartbeat INTEGER NOT NULL,
            sealing_key TEXT NOT NULL,
            keys TEXT NOT NULL,
            is_refreshing INTEGER NOT NULL DEFAULT 0 CHECK (is_refreshing IN (0, 1))
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE security_events (
            jti TEXT PRIMARY KEY NOT NULL,
            at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX security_events_by_time ON security_events (at);

        CREATE TABLE meta (
            key TEXT PRIMARY KEY NOT NULL,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """
}
