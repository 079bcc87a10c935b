"""The integrity of a scenario's database: its pages and indexes, and the rules that hold between its rows."""

# The states in which a grant is refreshed or probed.
CALLED = "state IN ('active', 'retrying', 'suspended')"
# Each rule selects the rows that break it; SQLite and PostgreSQL understand all of them.
RULES = {
    "only an active grant has no reason": "SELECT id FROM grants WHERE (state = 'active') <> (reason = 'none')",
    "a grant with calls to come has a token":
        f"SELECT id FROM grants WHERE {CALLED} AND refresh_token IS NULL AND access_token IS NULL",
    "a stored token is sealed, with a nonce and a tag":
        "SELECT id FROM grants WHERE length(refresh_token) < 28 OR length(access_token) < 28",
    "a grant belongs to a user": "SELECT id FROM grants WHERE user_id NOT IN (SELECT user_id FROM users)",
    "a user has its Google account":
        "SELECT user_id FROM users AS u WHERE google_user_id IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM accounts AS a WHERE a.google_user_id = u.google_user_id AND a.user_id = u.user_id)",
    "a Google account is its user's":
        "SELECT google_user_id FROM accounts AS a WHERE NOT EXISTS"
        " (SELECT 1 FROM users AS u WHERE u.user_id = a.user_id AND u.google_user_id = a.google_user_id)",
    "a session belongs to a user": "SELECT user_id FROM sessions WHERE user_id NOT IN (SELECT user_id FROM users)",
    "an event belongs to a grant": "SELECT number FROM grant_events WHERE grant_id NOT IN (SELECT id FROM grants)",
    "the latest event of a grant has its state":
        "SELECT g.id FROM grants AS g JOIN grant_events AS e ON e.grant_id = g.id WHERE e.to_state <> g.state"
        " AND e.number = (SELECT max(number) FROM grant_events WHERE grant_id = g.id)",
    "the number of grants in each state is right":
        "SELECT state FROM grant_counts AS c WHERE grants <> (SELECT count(*) FROM grants WHERE state = c.state)",
}
RULES_ON_SERVER = {
    "a grant has a schedule": "SELECT id FROM grants WHERE id NOT IN (SELECT grant_id FROM grant_schedule)",
    "a lease belongs to a grant": "SELECT grant_id FROM grant_schedule WHERE grant_id NOT IN (SELECT id FROM grants)",
    "a grant with calls to come has a due time":
        f"SELECT id FROM grants JOIN grant_schedule ON grant_id = id WHERE {CALLED} AND due_at IS NULL",
    "the schedule has the grant's client":
        "SELECT id FROM grants AS g JOIN grant_schedule AS s ON s.grant_id = g.id WHERE s.client_id <> g.client_id",
    # amcheck reads every page of each table, and compares each index with its table.
    "the pages of each table are intact":
        "SELECT relname, blkno, msg FROM pg_class CROSS JOIN LATERAL verify_heapam(oid, check_toast => true)"
        " WHERE relnamespace = 'refresh_worker'::regnamespace AND relkind = 'r'",
    "each index matches its table": """
        WITH indexes AS MATERIALIZED (
            SELECT oid, relname FROM pg_class
            WHERE relnamespace = 'refresh_worker'::regnamespace AND relkind = 'i'
        )
        SELECT relname FROM indexes WHERE bt_index_check(oid, heapallindexed => true) IS NULL
    """,
}
RULES_OF_FILES = {
    "a lease belongs to a grant": "SELECT grant_id FROM boot.leases WHERE grant_id NOT IN (SELECT id FROM grants)",
    "a grant with calls to come has a due time": f"SELECT id FROM grants WHERE {CALLED} AND due_at IS NULL",
    "the foreign keys are intact": "SELECT * FROM pragma_foreign_key_check",
    "SQLite finds no damage": "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
}


def damage(fixture):
    """The broken rules, each with the first rows that break it; empty for an intact database."""
    if fixture.server:
        fixture.server.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
    rules = RULES | (RULES_ON_SERVER if fixture.server else RULES_OF_FILES)
    broken = {}
    for rule, query in rules.items():
        try:
            rows = fixture.rows(query)
        except AssertionError as error:
            # The server's own error about a damaged page or index.
            rows = [{"error": f"{error}"}]
        if rows:
            broken[rule] = rows[:3]
    return broken
