extension Migration {
    /// Columns and tables that keep tokens and states safe under faults.
    ///
    /// Leases have a file of their own (``LeaseFile``).
    static let trust = Migration(
        statements: """
            -- A notice is about a user; its kind says whether it is about a grant or a session too. Numbers are not used again.
            ALTER TABLE notices RENAME TO former_notices;
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
            INSERT INTO notices (
                seq, nonce, kind, grant_id, user_id, at, from_state, to_state, reason, pending_since, attempts, next_try_at,
                accepted_at, given_up_at
            )
            SELECT seq, nonce, 'connection', grant_id, user_id, at, from_state, to_state, reason, pending_since, attempts,
                next_try_at, accepted_at, given_up_at
            FROM former_notices;
            DELETE FROM sqlite_sequence WHERE name = 'notices';
            INSERT INTO sqlite_sequence (name, seq) SELECT 'notices', seq FROM sqlite_sequence WHERE name = 'former_notices';
            DROP TABLE former_notices;
            CREATE INDEX notices_due ON notices (next_try_at, seq) WHERE next_try_at IS NOT NULL;
            -- The queue of a user, and a replay, which takes all notices of a user at a time.
            CREATE INDEX notices_by_user ON notices (user_id, seq);
            CREATE INDEX notices_settled ON notices (coalesce(accepted_at, given_up_at))
                WHERE accepted_at IS NOT NULL OR given_up_at IS NOT NULL;
            CREATE INDEX notices_by_time ON notices (at);

            DROP TABLE main.leases;
            ALTER TABLE grants ADD COLUMN suspected_since INTEGER;
            ALTER TABLE grants ADD COLUMN quick_refreshes INTEGER NOT NULL DEFAULT 0 CHECK (quick_refreshes >= 0);
            ALTER TABLE grants ADD COLUMN answer_lost_at INTEGER;
            ALTER TABLE grants ADD COLUMN rotation_claims BLOB;
            ALTER TABLE grants ADD COLUMN issued_tokens BLOB;
            ALTER TABLE grants ADD COLUMN former_tokens_until INTEGER;
            CREATE INDEX grants_with_former_tokens ON grants (former_tokens_until) WHERE former_tokens_until IS NOT NULL;

            -- A session remembers every token that may still come, and when its successor is wiped.
            DROP INDEX sessions_with_successor;
            ALTER TABLE sessions DROP COLUMN previous_hash;
            ALTER TABLE sessions DROP COLUMN rotated_at;
            ALTER TABLE sessions DROP COLUMN successor;
            ALTER TABLE sessions ADD COLUMN token_history BLOB;
            ALTER TABLE sessions ADD COLUMN successor BLOB;
            ALTER TABLE sessions ADD COLUMN successor_until INTEGER;
            CREATE INDEX sessions_with_successor ON sessions (successor_until) WHERE successor IS NOT NULL;
            """
    )
}
