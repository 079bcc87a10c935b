/// One step of the schema, from one version to the next.
struct PostgresMigration: Sendable {
    let statements: String
}

extension PostgresMigration {
    /// All steps, oldest first; the schema's version is their number.
    ///
    /// A released step is never changed: a new one is added.
    static let all: [PostgresMigration] = [firstSchema, uncountedSuccesses, usersOfMoves]

    /// The first schema; a grant has a row in two tables.
    ///
    /// `grant_schedule` is narrow and has the columns that change with each claim and refresh; only `due_at` of them is
    /// indexed, and a claim does not change it. `grants` is wide, and of its indexed columns a refresh changes only
    /// `used_on`, once a day. So most updates are heap-only: they do not touch the indexes, and their dead rows are
    /// removed page by page (https://www.postgresql.org/docs/15/storage-hot.html). The fill factors leave room for
    /// that; autovacuum starts early, since a fifth of a large table would be too late.
    ///
    /// Text is compared by bytes (`COLLATE "C"`): the order of ids is the same on every server, and no upgrade of its C
    /// library can break an index.
    private static let firstSchema = PostgresMigration(
        statements: """
            CREATE TABLE refresh_worker.users (
                user_id text COLLATE "C" PRIMARY KEY,
                created_at bigint NOT NULL,
                email text COLLATE "C",
                email_is_verified boolean,
                name text COLLATE "C",
                picture text COLLATE "C",
                google_user_id text COLLATE "C",
                last_login_at bigint,
                is_active boolean NOT NULL DEFAULT true,
                deleted_until bigint
            );
            CREATE UNIQUE INDEX users_by_account ON refresh_worker.users (google_user_id)
                WHERE google_user_id IS NOT NULL;
            CREATE INDEX users_by_email ON refresh_worker.users (lower(email)) WHERE email IS NOT NULL;
            CREATE INDEX users_by_deletion ON refresh_worker.users (deleted_until) WHERE deleted_until IS NOT NULL;

            CREATE TABLE refresh_worker.grants (
                \(PostgresGrantRow.definitions),
                \(GrantColumn.constraints),
                FOREIGN KEY (user_id) REFERENCES refresh_worker.users (user_id)
            ) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
            -- Sealed bytes cannot be compressed: trying would only cost time.
            ALTER TABLE refresh_worker.grants ALTER COLUMN refresh_token SET STORAGE EXTERNAL;
            ALTER TABLE refresh_worker.grants ALTER COLUMN access_token SET STORAGE EXTERNAL;
            CREATE INDEX grants_by_use ON refresh_worker.grants (used_on)
                WHERE state IN (\(GrantState.connectedList));
            CREATE INDEX grants_retrying ON refresh_worker.grants (client_id)
                WHERE state = '\(GrantState.retrying.rawValue)';
            CREATE INDEX grants_by_account ON refresh_worker.grants (google_user_id) WHERE google_user_id IS NOT NULL;
            CREATE INDEX grants_by_email ON refresh_worker.grants (lower(email)) WHERE email IS NOT NULL;
            CREATE INDEX grants_by_ending ON refresh_worker.grants (refresh_expires_at)
                WHERE refresh_expires_at IS NOT NULL;
            CREATE INDEX grants_by_state ON refresh_worker.grants (state, id)
                WHERE state <> '\(GrantState.active.rawValue)';
            CREATE INDEX grants_by_prefix_mark ON refresh_worker.grants (refresh_prefix_mark)
                WHERE refresh_prefix_mark IS NOT NULL;
            CREATE INDEX grants_by_digest_mark ON refresh_worker.grants (refresh_digest_mark)
                WHERE refresh_digest_mark IS NOT NULL;
            CREATE INDEX grants_with_former_tokens ON refresh_worker.grants (former_tokens_until)
                WHERE former_tokens_until IS NOT NULL;

            CREATE TABLE refresh_worker.grant_schedule (
                grant_id bigint PRIMARY KEY REFERENCES refresh_worker.grants (id),
                client_id text COLLATE "C" NOT NULL,
                due_at bigint,
                lease_owner text COLLATE "C",
                lease_claim bigint,
                lease_epoch text COLLATE "C",
                lease_until bigint,
                CHECK ((lease_owner IS NULL) = (lease_claim IS NULL)),
                CHECK ((lease_owner IS NULL) = (lease_epoch IS NULL)),
                CHECK ((lease_owner IS NULL) = (lease_until IS NULL))
            ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
            CREATE INDEX grants_due ON refresh_worker.grant_schedule (client_id, due_at, grant_id) WHERE due_at IS NOT NULL;

            -- The number of grants in each state: counting ten million each time would take seconds.
            CREATE TABLE refresh_worker.grant_counts (
                state text COLLATE "C" PRIMARY KEY,
                grants bigint NOT NULL
            ) WITH (fillfactor = 10);

            CREATE TABLE refresh_worker.grant_events (
                seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                grant_id bigint NOT NULL REFERENCES refresh_worker.grants (id),
                at bigint NOT NULL,
                kind text COLLATE "C" NOT NULL,
                from_state text COLLATE "C",
                to_state text COLLATE "C" NOT NULL,
                reason text COLLATE "C" NOT NULL,
                generation bigint NOT NULL
            );
            CREATE INDEX grant_events_by_grant ON refresh_worker.grant_events (grant_id, seq);

            CREATE TABLE refresh_worker.clients (
                client_id text COLLATE "C" PRIMARY KEY,
                health bytea NOT NULL
            ) WITH (fillfactor = 10);

            CREATE TABLE refresh_worker.workers (
                worker_id text COLLATE "C" PRIMARY KEY,
                heartbeat bigint NOT NULL,
                sealing_key text COLLATE "C" NOT NULL,
                keys text COLLATE "C" NOT NULL,
                is_refreshing boolean NOT NULL
            ) WITH (fillfactor = 10);

            CREATE TABLE refresh_worker.meta (
                key text COLLATE "C" PRIMARY KEY,
                value text COLLATE "C" NOT NULL
            );

            -- A session remembers every token that may still come, and when its successor is wiped.
            CREATE TABLE refresh_worker.sessions (
                id bytea PRIMARY KEY CHECK (length(id) = 16),
                user_id text COLLATE "C" NOT NULL REFERENCES refresh_worker.users (user_id),
                created_at bigint NOT NULL,
                expires_at bigint NOT NULL,
                current_hash bytea NOT NULL,
                token_history bytea,
                successor bytea,
                successor_until bigint
            );
            CREATE INDEX sessions_by_user ON refresh_worker.sessions (user_id);
            CREATE INDEX sessions_by_end ON refresh_worker.sessions (expires_at);
            CREATE INDEX sessions_with_successor ON refresh_worker.sessions (successor_until)
                WHERE successor IS NOT NULL;

            CREATE TABLE refresh_worker.security_events (
                jti text COLLATE "C" PRIMARY KEY,
                at bigint NOT NULL
            );
            CREATE INDEX security_events_by_time ON refresh_worker.security_events (at);

            -- A notice is about a user; its kind says whether it is about a grant or a session too.
            CREATE TABLE refresh_worker.notices (
                seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                nonce bigint NOT NULL CHECK (nonce BETWEEN 0 AND 4294967295),
                kind text COLLATE "C" NOT NULL,
                grant_id bigint,
                user_id text COLLATE "C" NOT NULL,
                at bigint NOT NULL,
                from_state text COLLATE "C",
                to_state text COLLATE "C",
                reason text COLLATE "C",
                lost_scopes text COLLATE "C",
                granted_scopes text COLLATE "C",
                session_id text COLLATE "C",
                pending_since bigint NOT NULL,
                attempts bigint NOT NULL CHECK (attempts >= 0),
                next_try_at bigint,
                accepted_at bigint,
                given_up_at bigint,
                CHECK (accepted_at IS NULL OR given_up_at IS NULL),
                CHECK (next_try_at IS NULL OR (accepted_at IS NULL AND given_up_at IS NULL))
            );
            CREATE INDEX notices_due ON refresh_worker.notices (next_try_at, seq) WHERE next_try_at IS NOT NULL;
            -- The queue of a user, and a replay, which takes all notices of a user at a time.
            CREATE INDEX notices_by_user ON refresh_worker.notices (user_id, seq);
            CREATE INDEX notices_settled ON refresh_worker.notices (coalesce(accepted_at, given_up_at))
                WHERE accepted_at IS NOT NULL OR given_up_at IS NOT NULL;
            CREATE INDEX notices_by_time ON refresh_worker.notices (at);

            \(useCheck)
            """
    )

    /// Plain refreshes that the health of their client does not contain yet: a row for each batch, for a few seconds.
    private static let uncountedSuccesses = PostgresMigration(
        statements: """
            CREATE TABLE refresh_worker.client_successes (
                client_id text COLLATE "C" NOT NULL,
                at bigint NOT NULL,
                successes bigint NOT NULL CHECK (successes > 0),
                client_secret bigint NOT NULL
            ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
            """
    )

    /// The end of the backend's tokens that were accepted for a user, and if the user is known only from a sign-in.
    private static let usersOfMoves = PostgresMigration(
        statements: """
            ALTER TABLE refresh_worker.users ADD COLUMN tokens_until bigint;
            ALTER TABLE refresh_worker.users ADD COLUMN is_from_sign_in boolean NOT NULL DEFAULT false;
            """
    )
}
