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
            """
    )
}
