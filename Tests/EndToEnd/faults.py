"""The shared parts of the fault runs on PostgreSQL: grants that are due on command, and their verification.

The sandbox counts the calls of each grant and records which refresh token it issued last. A grant is due only when the
scenario makes it so, because its tokens live long. Each additional call is therefore one too many, unless the fault
kept an earlier answer from being stored.
"""

import json
import subprocess

from expectations import wait_for
from integrity import damage
from wrong_clock import build as build_wrong_clock

LEASE = 30  # seconds, of RefreshEngine.swift
STORE_TIMEOUT = 10  # seconds that one call of the store may take, of PostgresStore.swift
# The database's time in milliseconds, in SQL.
DATABASE_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"


class Rounds:
    """Grants that are all due at once, again and again."""

    def __init__(self, fixture, count):
        self.fixture = fixture
        self.sandbox = fixture.sandbox
        # Careful rotation: a token whose successor was lost still works.
        self.sandbox.settings(lifetime=3600, rotation=True)
        created = self.sandbox.create(count)
        self.emails = [grant["email"] for grant in created]
        if not fixture.keys.exists():
            fixture.generate_keys()
        fixture.import_grants(created)
        self.rounds = 0
        self.due = 0
        # The users whose grants may have been called once more than they were due.
        self.explained = {}

    def begin(self, hold=False):
        """Makes every grant due; with `hold`, the sandbox keeps each answer back until `release`."""
        if hold and self.rounds == 0:
            # A worker sends few requests until the first of them has succeeded.
            self.begin()
            self.wait_stored(30, "the first answers are stored")
        for email in self.emails if hold else []:
            self.sandbox.change({"email": email}, hold=True)
        self.rounds += 1
        # So far ahead that every worker's scan has seen it: any worker would take an overdue grant.
        self.due = int(self.fixture.server.execute(DATABASE_NOW)) + 4_000
        self.fixture.set_due(self.due)

    def wait_held(self):
        self.sandbox.call(f"/control/wait?holding={len(self.emails)}")

    def release(self, emails):
        """Releases the answers of these grants, and waits until they are sent."""
        before = self.sandbox.stats()["by_answer"].get("ok", 0)
        for email in emails:
            self.sandbox.call("/control/release", {"email": email})
        wait_for(
            lambda: self.sandbox.stats()["by_answer"].get("ok", 0) >= before + len(emails), 60, "the answers are given"
        )

    def explain(self, emails):
        """Allows one more call of each: the fault kept one of its answers from being stored."""
        for email in emails:
            self.explained[email] = self.explained.get(email, 0) + 1

    def claimed_by(self, *names):
        """The users whose grants the workers with these names hold now."""
        return {row["user_id"] for row in self.fixture.rows() if row["lease_owner"] in names}

    def wait_stored(self, seconds, message):
        """Waits until nothing of this round is due or claimed any more: all answers are stored."""
        undone = f"SELECT count(*) AS n FROM grant_schedule WHERE lease_owner IS NOT NULL OR due_at <= {self.due}"
        wait_for(lambda: self.fixture.rows(undone)[0]["n"] == 0, seconds, message)

    def verify(self):
        """Checks that no token was lost, no call repeated, and no user disconnected."""
        fixture, stats = self.fixture, self.sandbox.stats(grants=True)
        assert fixture.states() == {"active": len(self.emails)}, "every grant is active"
        ended = fixture.rows("SELECT * FROM grant_events WHERE to_state NOT IN ('active', 'retrying')")
        assert ended == [], "no grant was ever ended"
        assert damage(fixture) == {}, "the database is intact"
        assert stats["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
        assert stats["by_answer"].get("invalid_grant", 0) == 0, "no spent refresh token is sent"
        for grant in stats["grants"]:
            most = self.rounds + self.explained.get(grant["email"], 0)
            assert self.rounds <= grant["requests"] <= most, (
                f"each call of {grant['email']} has a due time or a fault that explains it"
            )
        lines = fixture.run("grants", "export", "--plaintext").stdout.splitlines()
        stored = {line["user_id"]: line["refresh_token"] for line in map(json.loads, lines)}
        issued = {grant["email"]: grant["current_refresh_token"] for grant in stats["grants"]}
        stale = [email for email, token in issued.items() if stored[email] != token]
        assert not stale, "each stored token is the newest that was issued"
        doubled = sum(grant["requests"] - self.rounds for grant in stats["grants"])
        return f"{len(self.emails)} grants, {self.rounds} times due, {doubled} additional calls, each explained"


def named(url, name):
    """The address with a name for the worker's sessions, by which the server distinguishes them."""
    return f"{url}&application_name={name}"


def worker_name(worker):
    """The name that a worker signs its leases with."""
    return worker.wait_started().events("started")[0]["worker"]


def wait_until_all_reported(fixture, count):
    """Waits until each of `count` workers has reported since the last one started: then they share the work."""
    began = int(fixture.server.execute(DATABASE_NOW))
    reports = f"SELECT count(*) AS n FROM workers WHERE heartbeat > {began}"
    wait_for(lambda: fixture.rows(reports)[0]["n"] == count, 60, f"{count} workers have reported")


class HeldLock:
    """The grants' rows, locked by an administrator until `release`: a worker that stores an answer waits for them."""

    def __init__(self, server):
        self.server = server
        self.session = subprocess.Popen(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", server.url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.session.stdin.write("BEGIN; SELECT 1 FROM grant_schedule FOR UPDATE; SELECT 'held';\n")
        self.session.stdin.flush()
        while "held" not in (line := self.session.stdout.readline()):
            assert line, "psql locks the rows"

    def wait_for_waiter(self, name):
        """Waits until a commit of this worker waits for the rows; a renewal of leases, which may wait too, does not
        count.

        The server ends the wait after PATIENCE, and the worker tries again later. A commit that is nearly at that
        limit could end before the caller acts on it, so only one that has just begun counts.
        """
        condition = (
            "wait_event_type = 'Lock' AND query LIKE '%FOR NO KEY UPDATE OF g%'"
            " AND clock_timestamp() - query_start < interval '1 second'"
        )
        self.server.wait_for_session(name, condition, "waits for the rows", 3 * STORE_TIMEOUT)

    def release(self):
        self.session.stdin.close()
        self.session.wait(timeout=60)


def wrong_clock(fixture):
    """The library that makes a worker's clocks wrong (LD_PRELOAD)."""
    return build_wrong_clock(fixture.folder)


class Clocks:
    """The wall clock and the boot clock of a worker that listens, and the clock of its PostgreSQL server if it has one.

    They advance while both are stopped. Processes that are started afterwards by other means see the real time.
    """

    def __init__(self, fixture, accounts):
        self.fixture = fixture
        self.accounts = accounts
        self.library = wrong_clock(fixture)
        self.ahead = 0

    @property
    def environment(self):
        return {
            "LD_PRELOAD": self.library, "CLOCK_WRONG_BY": str(self.ahead), "BOOT_CLOCK_AHEAD_BY": str(self.ahead),
        }

    def advance(self, seconds):
        self.ahead += seconds
        self.accounts.worker.stop()
        if self.fixture.server:
            self.fixture.server.stop("fast")
            self.fixture.server.start(environment=self.environment)
        self.accounts.start(environment=self.environment)
