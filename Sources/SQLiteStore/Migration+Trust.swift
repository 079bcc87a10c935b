extension Migration {
    /// Columns and tables that keep tokens and states safe under faults.
    ///
    /// Leases have a file of their own (``LeaseFile``).
    static let trust = Migration(
        statements: """
            -- A replay takes all notices of a grant at a time.
            DROP INDEX notices_pending;
            CREATE INDEX notices_by_grant ON notices (grant_id, seq);

            DROP TABLE main.leases;
            ALTER TABLE grants ADD COLUMN suspected_since INTEGER;
            ALTER TABLE grants ADD COLUMN quick_refreshes INTEGER NOT NULL DEFAULT 0 CHECK (quick_refreshes >= 0);
            ALTER TABLE grants ADD COLUMN answer_lost_at INTEGER;
            ALTER TABLE grants ADD COLUMN rotation_claims BLOB;
            ALTER TABLE grants ADD COLUMN issued_tokens BLOB;

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
