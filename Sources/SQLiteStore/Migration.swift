/// One step of the schema, from one version to the next.
struct Migration: Sendable {
    let statements: String
    /// `true` if the step drops a table that others refer to, which foreign keys would forbid
    /// (https://sqlite.org/lang_altertable.html#otheralter).
    var remakesTables = false
}

extension Migration {
    /// All steps, oldest first; the schema's version is their number.
    ///
    /// A released step is never changed: a new one is added.
    static let all: [Migration] = [firstSchema, accounts, lightRefresh, trust]

    /// Users, grants, their history, and the reports of workers.
    ///
    /// The columns of `grants` that a scan needs come first and the sealed tokens last, so that a scan does not have to
    /// read them. The ids are ordered by phase: grants that are due together are close together.
    ///
    /// An index costs an update only if the statement names a column of it. `grants_due` and `grants_by_use` change
    /// with every refresh; the columns of the others change seldom and are written by a statement of their own.
    private static let firstSchema = Migration(
        statements: """
            CREATE TABLE users (
                user_id TEXT PRIMARY KEY NOT NULL,
                created_at INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;

            CREATE TABLE grants (
                id INTEGER PRIMARY KEY CHECK (id >= 0),
                user_id TEXT NOT NULL UNIQUE REFERENCES users (user_id),
                created_at INTEGER NOT NULL,
                client_id TEXT NOT NULL,
                google_user_id TEXT,
                email TEXT,
                name TEXT,
                email_is_verified INTEGER CHECK (email_is_verified IN (0, 1)),
                scope TEXT NOT NULL,
                state TEXT NOT NULL
                    CHECK (state IN ('active', 'retrying', 'suspended', 'reauth_required', 'disconnected')),
                reason TEXT NOT NULL,
                since INTEGER NOT NULL,
                generation INTEGER NOT NULL CHECK (generation >= 0),
                due_at INTEGER,
                attempts INTEGER NOT NULL CHECK (attempts >= 0),
                failing_since INTEGER,
                last_success_at INTEGER,
                last_attempt_at INTEGER,
                is_proven INTEGER NOT NULL CHECK (is_proven IN (0, 1)),
                revocation_asked_at INTEGER,
                lease_owner TEXT,
                lease_claim INTEGER,
                lease_epoch TEXT,
                lease_until INTEGER,
                refresh_expires_at INTEGER,
                refresh_key TEXT,
                access_obtained_at INTEGER,
                access_expires_at INTEGER,
                access_type TEXT,
                access_key TEXT,
                refresh_token BLOB,
                access_token BLOB,
                CHECK ((lease_owner IS NULL) = (lease_claim IS NULL)),
                CHECK ((lease_owner IS NULL) = (lease_epoch IS NULL)),
                CHECK ((lease_owner IS NULL) = (lease_until IS NULL)),
                CHECK ((refresh_token IS NULL) = (refresh_key IS NULL)),
                CHECK (refresh_token IS NOT NULL OR refresh_expires_at IS NULL),
                CHECK ((access_token IS NULL) = (access_key IS NULL)),
                CHECK ((access_token IS NULL) = (access_obtained_at IS NULL)),
                CHECK ((access_token IS NULL) = (access_expires_at IS NULL)),
                CHECK ((access_token IS NULL) = (access_type IS NULL))
            ) STRICT;

            CREATE INDEX grants_due ON grants (due_at, id, client_id) WHERE due_at IS NOT NULL;
            CREATE INDEX grants_by_use ON grants (coalesce(last_success_at, created_at))
                WHERE state IN ('active', 'retrying');
            CREATE INDEX grants_by_state ON grants (state);
            CREATE INDEX grants_by_account ON grants (google_user_id) WHERE google_user_id IS NOT NULL;
            CREATE INDEX grants_by_email ON grants (lower(email)) WHERE email IS NOT NULL;
            CREATE INDEX grants_by_ending ON grants (refresh_expires_at) WHERE refresh_expires_at IS NOT NULL;
            CREATE INDEX grants_by_key ON grants (refresh_key, access_key);

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
                keys TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;

            CREATE TABLE meta (
                key TEXT PRIMARY KEY NOT NULL,
                value TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;
            """
    )

    /// Users, their sessions, known security events, the outbox of notices, and the marks of refresh tokens.
    ///
    /// `notices` does not refer to a grant: a notice outlives the grant of a deleted user. For each grant only the
    /// oldest pending notice has a `next_try_at`, so that the index on it is the queue.
    private static let accounts = Migration(
        statements: """
            ALTER TABLE users ADD COLUMN email TEXT;
            ALTER TABLE users ADD COLUMN email_is_verified INTEGER CHECK (email_is_verified IN (0, 1));
            ALTER TABLE users ADD COLUMN name TEXT;
            ALTER TABLE users ADD COLUMN picture TEXT;
            ALTER TABLE users ADD COLUMN google_user_id TEXT;
            ALTER TABLE users ADD COLUMN last_login_at INTEGER;
            ALTER TABLE users ADD COLUMN is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1));
            ALTER TABLE users ADD COLUMN deleted_until INTEGER;
            CREATE UNIQUE INDEX users_by_account ON users (google_user_id) WHERE google_user_id IS NOT NULL;
            CREATE INDEX users_by_email ON users (lower(email)) WHERE email IS NOT NULL;
            CREATE INDEX users_by_deletion ON users (deleted_until) WHERE deleted_until IS NOT NULL;

            ALTER TABLE grants ADD COLUMN refresh_prefix_mark BLOB
                CHECK (refresh_token IS NOT NULL OR refresh_prefix_mark IS NULL);
            ALTER TABLE grants ADD COLUMN refresh_digest_mark BLOB
                CHECK ((refresh_digest_mark IS NULL) = (refresh_prefix_mark IS NULL));
            CREATE INDEX grants_by_prefix_mark ON grants (refresh_prefix_mark) WHERE refresh_prefix_mark IS NOT NULL;
            CREATE INDEX grants_by_digest_mark ON grants (refresh_digest_mark) WHERE refresh_digest_mark IS NOT NULL;
            CREATE INDEX grants_unmarked ON grants (id) WHERE refresh_key IS NOT NULL AND refresh_prefix_mark IS NULL;

            CREATE TABLE sessions (
                id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
                user_id TEXT NOT NULL REFERENCES users (user_id),
                created_at INTEGER NOT NULL,
                expires_at INTEGER NOT NULL,
                current_hash BLOB NOT NULL,
                previous_hash BLOB,
                rotated_at INTEGER,
                successor BLOB
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX sessions_by_user ON sessions (user_id);
            CREATE INDEX sessions_by_end ON sessions (expires_at);
            CREATE INDEX sessions_with_successor ON sessions (rotated_at) WHERE successor IS NOT NULL;

            CREATE TABLE security_events (
                jti TEXT PRIMARY KEY NOT NULL,
                at INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX security_events_by_time ON security_events (at);

            CREATE TABLE notices (
                seq INTEGER PRIMARY KEY AUTOINCREMENT,
                nonce INTEGER NOT NULL CHECK (nonce BETWEEN 0 AND 4294967295),
                grant_id INTEGER NOT NULL,
                user_id TEXT NOT NULL,
                at INTEGER NOT NULL,
                from_state TEXT NOT NULL,
                to_state TEXT NOT NULL,
                reason TEXT NOT NULL,
                pending_since INTEGER NOT NULL,
                attempts INTEGER NOT NULL CHECK (attempts >= 0),
                next_try_at INTEGER,
                accepted_at INTEGER,
                given_up_at INTEGER,
                CHECK (accepted_at IS NULL OR given_up_at IS NULL),
                CHECK (next_try_at IS NULL OR (accepted_at IS NULL AND given_up_at IS NULL))
            ) STRICT;
            CREATE INDEX notices_due ON notices (next_try_at, seq) WHERE next_try_at IS NOT NULL;
            CREATE INDEX notices_pending ON notices (grant_id, seq) WHERE accepted_at IS NULL AND given_up_at IS NULL;
            CREATE INDEX notices_settled ON notices (coalesce(accepted_at, given_up_at))
                WHERE accepted_at IS NOT NULL OR given_up_at IS NOT NULL;
            CREATE INDEX notices_by_time ON notices (at);
            """
    )

    /// Changes that make the write of a refresh small.
    ///
    /// A lease has a table of its own, so that a claim does not write the grant's whole row, and the index by use
    /// contains days, so that it changes once a day and not with each refresh. The due index is divided by client, so
    /// that one client's overdue grants do not delay another's.
    ///
    /// Triggers count the grants in each state: counting ten million at each scrape of the metrics would take a second.
    ///
    /// SQLite cannot drop a column that a CHECK names, so `grants` is created again.
    private static let lightRefresh = Migration(
        statements: """
            CREATE TABLE leases (
                grant_id INTEGER PRIMARY KEY REFERENCES grants (id) ON DELETE CASCADE,
                owner TEXT NOT NULL,
                claim INTEGER NOT NULL,
                epoch TEXT NOT NULL,
                until INTEGER NOT NULL
            ) STRICT;
            INSERT INTO leases
                SELECT id, lease_owner, lease_claim, lease_epoch, lease_until FROM grants WHERE lease_owner IS NOT NULL;

            CREATE TABLE new_grants (
                id INTEGER PRIMARY KEY CHECK (id >= 0),
                user_id TEXT NOT NULL UNIQUE REFERENCES users (user_id),
                created_at INTEGER NOT NULL,
                client_id TEXT NOT NULL,
                google_user_id TEXT,
                email TEXT,
                name TEXT,
                email_is_verified INTEGER CHECK (email_is_verified IN (0, 1)),
                scope TEXT NOT NULL,
                state TEXT NOT NULL
                    CHECK (state IN ('active', 'retrying', 'suspended', 'reauth_required', 'disconnected')),
                reason TEXT NOT NULL,
                since INTEGER NOT NULL,
                generation INTEGER NOT NULL CHECK (generation >= 0),
                due_at INTEGER,
                attempts INTEGER NOT NULL CHECK (attempts >= 0),
                failing_since INTEGER,
                last_success_at INTEGER,
                last_attempt_at INTEGER,
                used_on INTEGER NOT NULL,
                is_proven INTEGER NOT NULL CHECK (is_proven IN (0, 1)),
                revocation_asked_at INTEGER,
                refresh_expires_at INTEGER,
                refresh_key TEXT,
                access_obtained_at INTEGER,
                access_expires_at INTEGER,
                access_type TEXT,
                access_key TEXT,
                refresh_prefix_mark BLOB,
                refresh_digest_mark BLOB,
                refresh_token BLOB,
                access_token BLOB,
                CHECK ((refresh_token IS NULL) = (refresh_key IS NULL)),
                CHECK (refresh_token IS NOT NULL OR refresh_expires_at IS NULL),
                CHECK (refresh_token IS NOT NULL OR refresh_prefix_mark IS NULL),
                CHECK ((refresh_digest_mark IS NULL) = (refresh_prefix_mark IS NULL)),
                CHECK ((access_token IS NULL) = (access_key IS NULL)),
                CHECK ((access_token IS NULL) = (access_obtained_at IS NULL)),
                CHECK ((access_token IS NULL) = (access_expires_at IS NULL)),
                CHECK ((access_token IS NULL) = (access_type IS NULL))
            ) STRICT;
            INSERT INTO new_grants SELECT
                id, user_id, created_at, client_id, google_user_id, email, name, email_is_verified, scope, state, reason,
                since, generation, due_at, attempts, failing_since, last_success_at, last_attempt_at,
                coalesce(last_success_at, created_at) / 86400000, is_proven, revocation_asked_at, refresh_expires_at,
                refresh_key, access_obtained_at, access_expires_at, access_type, access_key, refresh_prefix_mark,
                refresh_digest_mark, refresh_token, access_token
            FROM grants ORDER BY id;
            DROP TABLE grants;
            ALTER TABLE new_grants RENAME TO grants;

            CREATE INDEX grants_due ON grants (client_id, due_at, id) WHERE due_at IS NOT NULL;
            CREATE INDEX grants_by_use ON grants (used_on) WHERE state IN ('active', 'retrying');
            CREATE INDEX grants_by_state ON grants (state);
            CREATE INDEX grants_by_account ON grants (google_user_id) WHERE google_user_id IS NOT NULL;
            CREATE INDEX grants_by_email ON grants (lower(email)) WHERE email IS NOT NULL;
            CREATE INDEX grants_by_ending ON grants (refresh_expires_at) WHERE refresh_expires_at IS NOT NULL;
            CREATE INDEX grants_by_key ON grants (refresh_key, access_key);
            CREATE INDEX grants_by_prefix_mark ON grants (refresh_prefix_mark) WHERE refresh_prefix_mark IS NOT NULL;
            CREATE INDEX grants_by_digest_mark ON grants (refresh_digest_mark) WHERE refresh_digest_mark IS NOT NULL;
            CREATE INDEX grants_unmarked ON grants (id) WHERE refresh_key IS NOT NULL AND refresh_prefix_mark IS NULL;

            CREATE TABLE grant_counts (
                state TEXT PRIMARY KEY NOT NULL,
                grants INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            INSERT INTO grant_counts SELECT state, count(*) FROM grants GROUP BY state;
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

            ALTER TABLE workers ADD COLUMN is_refreshing INTEGER NOT NULL DEFAULT 0 CHECK (is_refreshing IN (0, 1));
            """,
        remakesTables: true
    )
}
