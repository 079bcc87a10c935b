/// One step of the schema: what brings a database of the version before to this one.
struct Migration: Sendable {
    let statements: String
}

extension Migration {
    /// Every step there has been, oldest first; the schema's version is their number.
    ///
    /// A step that was ever released is never changed: another is added.
    static let all: [Migration] = [firstSchema]

    /// Users, grants, their history, and what workers tell one another.
    ///
    /// The columns of `grants` that a scan needs come first and the sealed tokens last, so that a scan need not read them.
    /// The id runs with the due phase: grants that come due together lie together.
    ///
    /// An index costs an update only when a column of it is named in the statement. `grants_due` and `grants_by_use` move
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
}
