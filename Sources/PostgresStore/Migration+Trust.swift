extension Migration {
    /// Columns and tables that keep tokens and states safe under faults.
    static let trust = Migration(
        statements: """
            \(useCheck)
            -- A notice is about a user; its kind says whether it is about a grant or a session too.
            ALTER TABLE refresh_worker.notices
                ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'connection',
                ADD COLUMN lost_scopes text COLLATE "C",
                ADD COLUMN granted_scopes text COLLATE "C",
                ADD COLUMN session_id text COLLATE "C",
                ALTER COLUMN grant_id DROP NOT NULL,
                ALTER COLUMN from_state DROP NOT NULL,
                ALTER COLUMN to_state DROP NOT NULL,
                ALTER COLUMN reason DROP NOT NULL;
            ALTER TABLE refresh_worker.notices ALTER COLUMN kind DROP DEFAULT;
            -- The queue of a user, and a replay, which takes all notices of a user at a time.
            DROP INDEX refresh_worker.notices_pending;
            CREATE INDEX notices_by_user ON refresh_worker.notices (user_id, seq);
            ALTER TABLE refresh_worker.grants
                ADD COLUMN suspected_since bigint,
                ADD COLUMN quick_refreshes bigint NOT NULL DEFAULT 0 CHECK (quick_refreshes >= 0),
                ADD COLUMN answer_lost_at bigint,
                ADD COLUMN rotation_claims bytea,
                ADD COLUMN issued_tokens bytea,
                ADD COLUMN former_tokens_until bigint;
            CREATE INDEX grants_with_former_tokens ON refresh_worker.grants (former_tokens_until)
                WHERE former_tokens_until IS NOT NULL;
            -- A session remembers every token that may still come, and when its successor is wiped.
            DROP INDEX refresh_worker.sessions_with_successor;
            ALTER TABLE refresh_worker.sessions
                DROP COLUMN previous_hash,
                DROP COLUMN rotated_at,
                DROP COLUMN successor,
                ADD COLUMN token_history bytea,
                ADD COLUMN successor bytea,
                ADD COLUMN successor_until bigint;
            CREATE INDEX sessions_with_successor ON refresh_worker.sessions (successor_until)
                WHERE successor IS NOT NULL;
            """
    )
}
