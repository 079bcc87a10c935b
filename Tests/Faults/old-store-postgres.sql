-- The store of old-store.sql on PostgreSQL, in the schema before the last step; its tokens are sealed with old-store.keys.
-- Tests/Faults/run commands brings it up to date.
BEGIN;
CREATE SCHEMA refresh_worker;
CREATE TABLE refresh_worker.schema_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version bigint NOT NULL
);
INSERT INTO refresh_worker.schema_version (version) VALUES (1);
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
    id bigint PRIMARY KEY CHECK (id >= 0),
    user_id text COLLATE "C" NOT NULL UNIQUE REFERENCES refresh_worker.users (user_id),
    created_at bigint NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    google_user_id text COLLATE "C",
    email text COLLATE "C",
    name text COLLATE "C",
    email_is_verified boolean,
    scope text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL
        CHECK (state IN ('active', 'retrying', 'suspended', 'reauth_required', 'disconnected')),
    reason text COLLATE "C" NOT NULL,
    since bigint NOT NULL,
    generation bigint NOT NULL CHECK (generation >= 0),
    attempts bigint NOT NULL CHECK (attempts >= 0),
    failing_since bigint,
    last_success_at bigint,
    last_attempt_at bigint,
    used_on bigint NOT NULL,
    is_proven boolean NOT NULL,
    revocation_asked_at bigint,
    refresh_expires_at bigint,
    refresh_key text COLLATE "C",
    refresh_prefix_mark bytea,
    refresh_digest_mark bytea,
    access_obtained_at bigint,
    access_expires_at bigint,
    access_type text COLLATE "C",
    access_key text COLLATE "C",
    refresh_token bytea,
    access_token bytea,
    CHECK ((refresh_token IS NULL) = (refresh_key IS NULL)),
    CHECK (refresh_token IS NOT NULL OR refresh_expires_at IS NULL),
    CHECK (refresh_token IS NOT NULL OR refresh_prefix_mark IS NULL),
    CHECK ((refresh_digest_mark IS NULL) = (refresh_prefix_mark IS NULL)),
    CHECK ((access_token IS NULL) = (access_key IS NULL)),
    CHECK ((access_token IS NULL) = (access_obtained_at IS NULL)),
    CHECK ((access_token IS NULL) = (access_expires_at IS NULL)),
    CHECK ((access_token IS NULL) = (access_type IS NULL))
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
-- What is sealed cannot be compressed: trying would only cost time.
ALTER TABLE refresh_worker.grants ALTER COLUMN refresh_token SET STORAGE EXTERNAL;
ALTER TABLE refresh_worker.grants ALTER COLUMN access_token SET STORAGE EXTERNAL;
CREATE INDEX grants_by_use ON refresh_worker.grants (used_on) WHERE state IN ('active', 'retrying');
CREATE INDEX grants_retrying ON refresh_worker.grants (client_id) WHERE state = 'retrying';
CREATE INDEX grants_by_account ON refresh_worker.grants (google_user_id) WHERE google_user_id IS NOT NULL;
CREATE INDEX grants_by_email ON refresh_worker.grants (lower(email)) WHERE email IS NOT NULL;
CREATE INDEX grants_by_ending ON refresh_worker.grants (refresh_expires_at)
    WHERE refresh_expires_at IS NOT NULL;
CREATE INDEX grants_by_state ON refresh_worker.grants (state, id) WHERE state <> 'active';
CREATE INDEX grants_by_prefix_mark ON refresh_worker.grants (refresh_prefix_mark)
    WHERE refresh_prefix_mark IS NOT NULL;
CREATE INDEX grants_by_digest_mark ON refresh_worker.grants (refresh_digest_mark)
    WHERE refresh_digest_mark IS NOT NULL;
CREATE INDEX grants_unmarked ON refresh_worker.grants (id)
    WHERE refresh_key IS NOT NULL AND refresh_prefix_mark IS NULL;

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

-- How many grants are in each state: counting ten million anew would take seconds.
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

CREATE TABLE refresh_worker.sessions (
    id bytea PRIMARY KEY CHECK (length(id) = 16),
    user_id text COLLATE "C" NOT NULL REFERENCES refresh_worker.users (user_id),
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    current_hash bytea NOT NULL,
    previous_hash bytea,
    rotated_at bigint,
    successor bytea
);
CREATE INDEX sessions_by_user ON refresh_worker.sessions (user_id);
CREATE INDEX sessions_by_end ON refresh_worker.sessions (expires_at);
CREATE INDEX sessions_with_successor ON refresh_worker.sessions (rotated_at) WHERE successor IS NOT NULL;

CREATE TABLE refresh_worker.security_events (
    jti text COLLATE "C" PRIMARY KEY,
    at bigint NOT NULL
);
CREATE INDEX security_events_by_time ON refresh_worker.security_events (at);

CREATE TABLE refresh_worker.notices (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    nonce bigint NOT NULL CHECK (nonce BETWEEN 0 AND 4294967295),
    grant_id bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    from_state text COLLATE "C" NOT NULL,
    to_state text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    pending_since bigint NOT NULL,
    attempts bigint NOT NULL CHECK (attempts >= 0),
    next_try_at bigint,
    accepted_at bigint,
    given_up_at bigint,
    CHECK (accepted_at IS NULL OR given_up_at IS NULL),
    CHECK (next_try_at IS NULL OR (accepted_at IS NULL AND given_up_at IS NULL))
);
CREATE INDEX notices_due ON refresh_worker.notices (next_try_at, seq) WHERE next_try_at IS NOT NULL;
CREATE INDEX notices_pending ON refresh_worker.notices (grant_id, seq)
    WHERE accepted_at IS NULL AND given_up_at IS NULL;
CREATE INDEX notices_settled ON refresh_worker.notices (coalesce(accepted_at, given_up_at))
    WHERE accepted_at IS NOT NULL OR given_up_at IS NOT NULL;
CREATE INDEX notices_by_time ON refresh_worker.notices (at);
INSERT INTO refresh_worker.users (user_id, created_at, email, email_is_verified, name, picture, google_user_id, last_login_at, is_active, deleted_until) VALUES
('user0', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user1', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user10', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user11', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user12', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user13', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user14', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user15', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user16', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user17', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user18', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user19', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user2', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user20', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user21', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user22', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user23', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user24', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user25', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user26', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user27', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user28', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user29', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user3', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user4', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user5', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user6', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user7', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user8', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL),
('user9', 1795342178112, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL);
INSERT INTO refresh_worker.grants (id, user_id, created_at, client_id, google_user_id, email, name, email_is_verified, scope, state, reason, since, generation, attempts, failing_since, last_success_at, last_attempt_at, used_on, is_proven, revocation_asked_at, refresh_expires_at, refresh_key, refresh_prefix_mark, refresh_digest_mark, access_obtained_at, access_expires_at, access_type, access_key, refresh_token, access_token) VALUES
(261414620883043390, 'user2', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x2fd031dc09bf4f2594cd3c4dbbbe9f54ab02dfa1322bab4c88c4ab7c11fe8725', '\x0f5222bbb0a63966c68e473e4c3ec9ba5f31e221311c1dafa5dffbf777f7c1f3', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465687afdafa3ae6f089defbfa801a3dfcf86ed5ab8d58f125790e80dafe0459e77e1850c1183275df34202da8d368b', '\x0108333764316465346577046432bb8bc9862b45ef49e6c81e6c3e2eb692bd7fe829c0ce3711965396bd099fcabdc17347f5'),
(417778840634618926, 'user17', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xf3ee6f9aefa3f873a386d898a2bb36b5a23945f21eeb790eddcacc0ef29e971e', '\x25fba7facd36282484b6bdbe19d92d6416cecf0bb0d7bfc0a4d3b9485d590dcf', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x0108333764316465346559aa73f7681cabab54510bbc798ca81f287ea4207e6b4354c78109043c106e30b1098df4fe0b9389ac3f3dfaeb188e', '\x010833376431646534651f21b82f6341415b0dc02b98c87d6df36b4e3d1455c52e723f620f36020cbfea5df4594d3500e2eaba'),
(966141023392875535, 'user16', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x0a7966336bef9f28b8115e3beef671042741e1764724b6710232565d6a710c82', '\x418200e6f562cde8f10d5feeb00de9f09d9cc4d3cd41ea9f716f7776a6934621', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465aa8554c0ff7ed1fcd6b19eeac1d542a12af11ac7da064bd6e90c52647fbad13a7daa9fa98a35d1949f7476d70f2df3', '\x01083337643164653465d4acbcc61127f57e1245c7713716311509ba33d84b62e9728a064a427b9fc0361536a05333937e922a'),
(1436518085866449134, 'user23', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x3d2a23919a0acf471d8eac34e8e5e42370d0d5dfde07e656801e7deca226ba77', '\xfa317005bce18bdf80383d4e6877388c4f807f3860718766974d515858e690d0', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465c7f1dddc1343d63870f666695fce6879b9e25ce4b95f85024e6fa37d0c6ce66207a5f75ed9c9dd3fe3d5117e6f03e7', '\x01083337643164653465375735efd177ab9553e1f03ee8f72482e47a90716deb7475c3ea546ac3588380e9561db78a3bba801e'),
(1659154358111912011, 'user21', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x8b7a26be0d1c2b8da13314569ccc89b0a6032daa1ce19071868ebeb201b869ff', '\x5ea951e84d45af28636a8f9cc6f021afa1b22ecef0ddcbded79054b481a40c52', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465bb4dfabd11aa8f3a15fa6762f5336b9213200dde720d039e3c9a8fcfa3665741ee7aa746eb344373a22834048704d3', '\x010833376431646534651a57fea76629635e62b27904baa3d85948631a6122a66d3bdbc3f3278eb7aaaefccad93cdc85b6d0f7'),
(1903979358743147125, 'user6', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xd8d231a8adc8e2133bfb2e820e8b1e7e1c5c4f05265bffce2b2f08fb8c298a84', '\x1580433b52ce4e9baf81e1d9f26e75a0bd06c2310f6dd824a225339e5f5859d5', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x010833376431646534656f1993600048a7e86214bdecd141c3765f15df0debf855eb0aa38893a8c76d7faa0049334233b2c00aabcd393d99', '\x01083337643164653465fac6f9129062f000d15a8be8973801cdfbf762e8edcfa7f41dd8e45d833221327f649f6f3da33720'),
(2111896992545196040, 'user28', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x7fb8866b1a8eb1dc8e194097e740ffce8d93cc9be37da0bdc1c0dd0395e044c8', '\xd93d2f7c63c5ebe91708ee8d0fba23af8ff746188e1bfb0f9b6331ecfa2d82af', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x0108333764316465346568331b54800fd7d36b866fd325e49169d3268e14f96a5331fd634bb2e0199b9b9650bf33f7c79767b1f80210b018a6', '\x01083337643164653465e643c6e6dfd6ab1167466a74c139adf7aeb87a39237f72a7aa6d22a231dff47c92baaaecb252442f2c'),
(2119885093574345652, 'user1', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x6f908877a40a487e187ea82d47a07416f466603a90e3a762bb6743a784a9dcd0', '\xaf77675d9923d6666a304f35ef1e3971e408e0fcbbfa71f50736b74122a5e090', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465e12b1326043c2cce839bb9410c67632678c111482c157bd0d59e878f05493eca642a15aab72ccbd11e7f5240d73f', '\x0108333764316465346580ec28b060eeb292eea468ed2fcae0947bc03c626f850e6128962053d44dfdfe100f094298c2d957'),
(2226554615794538269, 'user9', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x65e89883c8b327d145787c8673ac7c94fcc98b2a088caf0dbc6a8f035f15dc3c', '\xb54f5753f2759f650b4a8cc799d1ce91b21e2268280b6a08d177cdae9f02b304', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465a68bef4b5971233fb36e7fb30755b456a74533c77bde66c7114880439af789328ec3955c72581be3480ce69f2891', '\x010833376431646534659a5feae9afb4350b80dcf8d16f850e80ab4a6a41eec172d155baa8e3ed13f45f4866c6b42255f88a'),
(2323213991751551909, 'user10', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x8472f4f45b9b5f9eff9d33e0b125b208b0e850d76ddf7a310f7762992b201da6', '\x019b9a444c7382d34584e94062a631f8d08b5630fb21c8273f831964da0ace55', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x010833376431646534651a93283aef78f95ccd2994adfe301e912ab71f46faf87434c8c1485d92d08902efefd8f5caefd427ed9eaa7ff2af36', '\x0108333764316465346524f1b4b3ae6c63453ad2c5f61c6ee0216dbaca6aa361941c26f51b3ab2b36385d308ce32d0a0e8642d'),
(2426123056059229654, 'user12', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x77ad36449b4d0d14221057edfae3f50ec4b483ae2922aebd13064a168f3d9aa9', '\x26292ce7968ff813ea5589274ca9539852295afe401b65c9fe82920144a99bd9', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x010833376431646534650316a84b487819b8af0794aa161ac02f7e65ef1a6ac9ea579c875d65e4c669922e7296a2d2c163fbdd46b3e6dc1bda', '\x01083337643164653465f3ec7d5fd9128def8616493cd1a04ac9aae7854d5b3211b2afa0c6ade30f90b96909ce8e26ae969984'),
(3299133793732795444, 'user14', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x7ce55905be88950da95aa6966e77a8ac18b93c64df4b21ffde8b0890ba51803d', '\x6835dc889cdf4498bc83ec3d3ec105d2e9b535bfeeabdc9e8f2d4e4b17feb337', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x0108333764316465346599cc77d91cc3cd697f2c15d427eef47e4b26a91fa8ae90f69a7a043ecbc98aad5f91f3a115c941df1656e344bbdb6c', '\x010833376431646534657c380eebf278f9f60ee00705fa62334562858438bec2a4e7317cca6f73ba78f7e362344c0621eb3295'),
(3485129912691470023, 'user3', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x8af3075e4924ae59d3d4892eb5a1aa15b0cb5fe0529b79a916dabe7a121101d3', '\x56484c95edfd3524d83dd28b4ec6a5c7bc165fe5ba118e40f3b1b716dacee186', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465578b63cd14c5d85a6b6688ee49c98c9210d0500ca2a4891b870c6e0348db619cb781f9e54fc4f63cc724f3dedab2', '\x010833376431646534652bd294366a7a97b2825eaba441caa873120c2557ada4ff91ed1849a50d60013027fd37b038e6cc2d'),
(3929094217260790607, 'user25', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xc5b7d9ada0e55f2e5c7fb4c5626c1ff38e66be2c3c2601283091f5f62e4aac68', '\x39e061bd47cec10cb95e25b7f48734529a32989dbdf7c612e06d7affe61f42c3', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465d3492f03f69c47c7b4584facd984c22c3344f665d46c740547cc9791b85ae4dd44d680e70df4675774e54eae2449fb', '\x01083337643164653465becacb7a2d01f608b89581be38792215c5ea43dd06bf39f52ba53a9b49f756f744d82db36ba5916fd6'),
(3976662597340875273, 'user0', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x5d0e4815c2fb07947a735a966d9103c9e996173f25e0a2101f33cb4649df51c4', '\xf64cf06bd228b807f179608d1e23fc6e635e32048ff0da228e567b0153c07f44', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465a955aeeeced0b29fcda2f26fa7356cbd1b6c7bf0be3e1b8cfef9767547e00ccebc81b21eb88d5e88f684f06609fd', '\x01083337643164653465443129bd18c1fd8b72c0ffc123998d97d4a58b532b73be0a670e259e2b566d925adf103fd2d6cf5a'),
(4120804599050436973, 'user26', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xd85364297221da05ee3193838d350bea10b8f95948f87c082eaefd34fa9cb9a9', '\x2ba5ee31b245757b0d6d28df814d51b51e57f553e64d1b132a93c2878813a146', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465e187b88d6e6ffa076d3ed39f7b2864bc2e6301153b689c149e1ea413142729f0a13a5b949db2213b89f67411c446c7', '\x0108333764316465346584c27023bf42163f84472423ac0df13940b6908db0fed962a36f43880aca14ed28576b925628d3070a'),
(4251103441275944168, 'user18', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x76d39a7b91fd5c948b0818414af3d8c19ba9b58a515be998832e8ba3abc1adbf', '\xe2716f174703e6a18de923a13a29d2efa0b60d8760eed08ee19db879d34d4885', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465b080710065c418189f6921ae4532ebcd771911f83306e2614b52c84664176769bb0f190995842254dee54c4a370992', '\x010833376431646534659e410aede06ebe6e9c8028eb13b1d155598d78d1d5e1802e97b82a3e433a1d258d7e5a16ddec749580'),
(4264582663248189420, 'user5', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xe1c5ccfe82b50d641cd64b18587d9d56e4820dc8c49774af17b145e223f3b87e', '\xa39c565f15ed007e986e12c3bae12751c21f3c9caeb319cf39172f9041259d12', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x010833376431646534658ae3357f7123ce8bf67bd06090de91e0c7b4fb3ed917b2ab4a62943d76b77a56db22d60231d2c03e0d7055687e9d', '\x010833376431646534656ef1289ae2e1967371061ba3db3e16939ab6079ce8462d3f87346c46e722646f602b08ea9b09ca05'),
(4362057430631609026, 'user15', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x20d7c86539c21b8e588812807f96e7321dfa448f30905437ca94084f5bb1e7a7', '\x51ed2ea65684d671845564143bc402175ecefce83e862b87a98ff012862066e5', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x0108333764316465346559b46ff4067a5b406a13054241c70571bb5445acaac0f6e96e25a0a834c027ce0b91be447b605408c7346969917e55', '\x010833376431646534653c6032f41f6c89f75ed2d289ac05f4509be51add5227c6f4bd9da55d12931a6a868b1ae3f9beb0fece'),
(4564075489472246465, 'user13', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x05768bbb81489231cad35d482739c17865cbc96c65a11f1daeec52048f7f928e', '\x207679dc03390a7cce0e2986ae8882d42b81d6f331eba3344071ca01d1a3d690', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465d5ebcf3c6a62dd51d553569a1fd2abe1a0eea433217f86b09fe86da9ee6ba0cb7de77b84bb6340fd2941e97caec76b', '\x01083337643164653465001054392848f97c601c498ab4774404716161f36a027bbd217d85ebc04d1205deaf1d574550dfc84a'),
(4841976554462749144, 'user20', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x154db1c7bb99bac30f716f288e21217acb26d2f449761cf85ad15389662023cc', '\x38dee245a18af3d5c3e19b28d45bb6fa066c04dbeb29f8fd5d9c33d13a349abb', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465552f12dde1aa1f20d006583f6fd6b67d46ad6e8e049502ca87ef9543b05b584451851be3f1a2672ef8a59b2726661f', '\x0108333764316465346511fcdb96273f2d6f5ede2e8e9e25cb699966f843ef7fb2f565166fccdd22179bea91b17cd68377ff13'),
(4874744914623258461, 'user4', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xad43843b58d9b44e8a712e6487dc864176a56426281d48ba88beaf685f0fac35', '\x69015a55eef6efa95d66a91522db688bab8c02a581e525a9405c4ca917810744', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x010833376431646534658ea9a9a20b2f1861629fa92afacf4a8384b55027f48284e874eb0e65fcc3e8963695808f1830616e34ea56fa929c', '\x0108333764316465346598f453dda5ce5485893de27ca6ceb210ab72c10baae1b36b5958d6b632f738be3b93ea4a1da29990'),
(5651471029073089512, 'user22', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x1bb5abf6f7166062165936dba136d6a6d0d40e7f5b93a366b4146d1149e2e5fd', '\x15c59278744d67f1d3c9e73a8f03af965a6fd92e34ac9204f0cc091743d327b8', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465205169f70c776f66664a624949220dcd0c0ffd418398ad49a18c95b6267758a80565221dede24779de267e168e7442', '\x0108333764316465346554a349dcbe7a7a8f63ffc01e7b8367b8fbd37a7b5a32abff4326c893ae1c2e235edae3e504e4c10b2f'),
(7308428161452081185, 'user27', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x1ccc94d7d1f10c3f4126eca9385893337687017d5788dadde70c6ad297910342', '\x965a516197ea4ea4fae9d6f7e2987c71248107cee77f9564015bb2843fb97632', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465ea38d7054c8c6d1e62c9e173023321c9f2cc64fafa3465e73cb3f693a2a43531899518366c02536c84932ccf62ad26', '\x01083337643164653465c89d88922aa17534587b88f207dc0f772381d05cd31ba4be226e368c09ac3b5e8c18edc908204d47fb'),
(7965265342318917982, 'user24', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x12163bd30117a98581a8edcfb6df79ec18d875c6e657bbc45420f926ae382f21', '\x82eee65068b28cfbcab5b6aeb8128644e378a605ba91e527591296f9aa9fa971', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465e8c05fec550b90cea62e51fdf10a43c2cf44fe561a20135c917ba5203d801770c373b2e4bb938a59b32042f7b41669', '\x0108333764316465346579ed5d275731870334fb683e23f26bcd29c60ef5833708bb310bdc3a2b6ef246b72cdd09afec1c5248'),
(8113239289290762327, 'user8', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xe50402e9d7101005e15e4a738df15320d2dcf0adbee32d52b91c0ce269fa3077', '\x1ec557cab2f8b9fd7a319263980eee47151e0ce535fdb1b86175737c2e984caf', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465c8ce4683107ea7d5e07a42f10d3930a4394bd856a61552c023658af8f36030ea425945cf6fe15065146b83e50db3', '\x0108333764316465346546059c5b6d10cef4f3c8770f28b0162f7420c08ce8ebc0c085a2b0fde6cd8f0b2acf5ea47d1559bc'),
(8384109782101778662, 'user19', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xac961374e3e1666d31a4323288a0ab0ac81e07fb9d833dc004a2e12671b27cb5', '\xd1a4f534bfdbbb0f560b83e970a1d12b6125f38d689d1127905ed51c799b4a02', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465c225801d6dbf5c605fafc518bf724529b853123c60b9731d4013245c7e81e6e4fd0fe0a81de895ea8a5e2bfa67aed0', '\x01083337643164653465aa33fe04d113ca0b6897832dbe581ab22b577fef1b7a61475316098b93be86be484c847500e9fa57ff'),
(8416587123178403586, 'user29', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xfc5d1a9b05705641dc1e5bd604a2c6fb808d6e1d0f18490153f266e266aaa31b', '\x5e5acba555efa62f2699f2b7088ec6a53ddb5c95325f978d9e56d1ea768cdb42', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465b60a3f53bc2922bc0299bc39be98b5f6d9b650c3bdb4edc7c5411f37e9cf07cd2bd5b76370cfbb7dab2845fcf9278e', '\x010833376431646534659db47892d1e1fc5b9b3409151015bcd6f3aba7ab81040062daa8aa86e953baaa7eecfd14a2c974590e'),
(8510840778161921630, 'user7', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\xf9e0f2c4512565cbed75c33905caee1d682ebd28772caf6c043e18216e466de4', '\x03fcd3d4b1014627b08f919dc7f1ca664bfebcf815dc2efe75be4237e80ad367', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465e6bec781ac2717cb4e0e2a9fd41683a754a8bfd56b48d39279f4c0d751461ce9ce62bdfe4c5e6a6abc357ba0870d', '\x01083337643164653465063d2ce1ed45aaf38049490b5988ce2d7bfd8d410c49207b634b51b95057600d7d59482e0db68f39'),
(8996685535469612904, 'user11', 1795342178112, '1234-demo.apps.googleusercontent.com', NULL, NULL, NULL, NULL, 'openid', 'active', 'none', 1795342178112, 1, 0, NULL, NULL, NULL, 20779, false, NULL, NULL, '37d1de4e', '\x6909a54fa4ef149e8e34e5228f3422c90e5fb944e7634ff5acea6bf2000c1249', '\x9a8b6c8ffece4fb9e38ace58d11e77f3ff184165fae6619c31280fe8bb1e9473', 1767222000000, 1767225600000, 'Bearer', '37d1de4e', '\x01083337643164653465459947b8a37a0a3ee7e135e5733c980f6fc3a603b599643631f5d4c459e7af0473cd38cb27a9e56c47f1e88ffc0f3a', '\x01083337643164653465c24113fae01748e4c36b3bce4a895758ba638579af14ead95a9847c9ccd8c76d55fce658bbfdca8be6');
INSERT INTO refresh_worker.grant_schedule (grant_id, client_id, due_at) VALUES
(261414620883043390, '1234-demo.apps.googleusercontent.com', 1795342178112),
(417778840634618926, '1234-demo.apps.googleusercontent.com', 1795342178112),
(966141023392875535, '1234-demo.apps.googleusercontent.com', 1795342178112),
(1436518085866449134, '1234-demo.apps.googleusercontent.com', 1795342178112),
(1659154358111912011, '1234-demo.apps.googleusercontent.com', 1795342178112),
(1903979358743147125, '1234-demo.apps.googleusercontent.com', 1795342178112),
(2111896992545196040, '1234-demo.apps.googleusercontent.com', 1795342178112),
(2119885093574345652, '1234-demo.apps.googleusercontent.com', 1795342178112),
(2226554615794538269, '1234-demo.apps.googleusercontent.com', 1795342178112),
(2323213991751551909, '1234-demo.apps.googleusercontent.com', 1795342178112),
(2426123056059229654, '1234-demo.apps.googleusercontent.com', 1795342178112),
(3299133793732795444, '1234-demo.apps.googleusercontent.com', 1795342178112),
(3485129912691470023, '1234-demo.apps.googleusercontent.com', 1795342178112),
(3929094217260790607, '1234-demo.apps.googleusercontent.com', 1795342178112),
(3976662597340875273, '1234-demo.apps.googleusercontent.com', 1795342178112),
(4120804599050436973, '1234-demo.apps.googleusercontent.com', 1795342178112),
(4251103441275944168, '1234-demo.apps.googleusercontent.com', 1795342178112),
(4264582663248189420, '1234-demo.apps.googleusercontent.com', 1795342178112),
(4362057430631609026, '1234-demo.apps.googleusercontent.com', 1795342178112),
(4564075489472246465, '1234-demo.apps.googleusercontent.com', 1795342178112),
(4841976554462749144, '1234-demo.apps.googleusercontent.com', 1795342178112),
(4874744914623258461, '1234-demo.apps.googleusercontent.com', 1795342178112),
(5651471029073089512, '1234-demo.apps.googleusercontent.com', 1795342178112),
(7308428161452081185, '1234-demo.apps.googleusercontent.com', 1795342178112),
(7965265342318917982, '1234-demo.apps.googleusercontent.com', 1795342178112),
(8113239289290762327, '1234-demo.apps.googleusercontent.com', 1795342178112),
(8384109782101778662, '1234-demo.apps.googleusercontent.com', 1795342178112),
(8416587123178403586, '1234-demo.apps.googleusercontent.com', 1795342178112),
(8510840778161921630, '1234-demo.apps.googleusercontent.com', 1795342178112),
(8996685535469612904, '1234-demo.apps.googleusercontent.com', 1795342178112);
INSERT INTO refresh_worker.grant_counts (state, grants) VALUES
('active', 30);
INSERT INTO refresh_worker.grant_events (seq, grant_id, at, kind, from_state, to_state, reason, generation) OVERRIDING SYSTEM VALUE VALUES
(1, 3976662597340875273, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(2, 2119885093574345652, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(3, 261414620883043390, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(4, 3485129912691470023, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(5, 4874744914623258461, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(6, 4264582663248189420, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(7, 1903979358743147125, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(8, 8510840778161921630, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(9, 8113239289290762327, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(10, 2226554615794538269, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(11, 2323213991751551909, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(12, 8996685535469612904, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(13, 2426123056059229654, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(14, 4564075489472246465, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(15, 3299133793732795444, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(16, 4362057430631609026, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(17, 966141023392875535, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(18, 417778840634618926, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(19, 4251103441275944168, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(20, 8384109782101778662, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(21, 4841976554462749144, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(22, 1659154358111912011, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(23, 5651471029073089512, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(24, 1436518085866449134, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(25, 7965265342318917982, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(26, 3929094217260790607, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(27, 4120804599050436973, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(28, 7308428161452081185, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(29, 2111896992545196040, 1795342178112, 'connected', NULL, 'active', 'none', 1),
(30, 8416587123178403586, 1795342178112, 'connected', NULL, 'active', 'none', 1);
SELECT setval(pg_get_serial_sequence('refresh_worker.grant_events', 'seq'), max(seq)) FROM refresh_worker.grant_events;
COMMIT;
