extension Migration {
    /// Columns and tables that keep tokens and states safe under faults.
    static let trust = Migration(
        statements: """
            \(useCheck)
            -- A replay takes all notices of a grant at a time.
            DROP INDEX refresh_worker.notices_pending;
            CREATE INDEX notices_by_grant ON refresh_worker.notices (grant_id, seq);
            ALTER TABLE refresh_worker.grants
                ADD COLUMN suspected_since bigint,
                ADD COLUMN quick_refreshes bigint NOT NULL DEFAULT 0 CHECK (quick_refreshes >= 0),
                ADD COLUMN answer_lost_at bigint,
                ADD COLUMN rotation_claims bytea;
            """
    )
}
