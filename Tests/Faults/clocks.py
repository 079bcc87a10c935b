"""SQLite: the worker restarts while the wall clock is ahead, by days or by years.

Nothing that expires is deleted meanwhile: sessions, deleted users, grants that ended, and no token is lost.
"""

import contextlib
import os
import sqlite3
import time

import wrong_clock
from trial import Template, Trial, command, pause
from verification import check_integrity, verify

GRANTS = 60
ENDED = 5  # grants whose users have disconnected
DELETED = 5  # users who were deleted, and whose names are still kept
RESTARTS = 3
DAY = 86_400
# Most of a trial is spent waiting for clean-ups.
JOBS_FACTOR = 3
FLAGS = ("--forget-ended-after", "1")


class ClocksTemplate(Template):
    """Grants that are due, users with sessions, deleted users and grants that have ended."""

    kind = "clocks"

    def make(self):
        super().make()
        now = int(time.time() * 1000)
        with connection(self.folder / "grants.sqlite") as database:
            users = [row[0] for row in database.execute("SELECT user_id FROM users ORDER BY user_id")]
            database.execute("UPDATE users SET email = user_id || '@example.com'")
            # A user with a session is not forgotten.
            for number, user in enumerate(sorted(set(users) - set(self.names[:ENDED]))):
                database.execute(
                    "INSERT INTO sessions (id, user_id, created_at, expires_at, current_hash) VALUES (?, ?, ?, ?, ?)",
                    (number.to_bytes(16), user, now, now + 30 * DAY * 1000, number.to_bytes(32)),
                )
            for number in range(DELETED):
                database.execute(
                    "INSERT INTO users (user_id, created_at, is_active, deleted_until) VALUES (?, ?, false, ?)",
                    (f"deleted{number}", now, now + 10 * DAY * 1000),
                )


@contextlib.contextmanager
def connection(path):
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as database, database:
        yield database


def template(base):
    if not (base / "wrong_clock.so").exists():
        wrong_clock.build(base)
    return ClocksTemplate(base, GRANTS)


def counts_of(database):
    with connection(database) as opened:
        tables = {
            table: opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("users", "sessions", "grants")
        }
        known = opened.execute("SELECT count(*) FROM users WHERE email IS NOT NULL").fetchone()[0]
        return {**tables, "known": known}


def has_cleaned_up(database):
    """Returns a condition that is true after some clean-ups: each stores a reading of the clock, as heartbeats do."""
    readings = set()

    def condition():
        with connection(database) as opened:
            readings.update(opened.execute("SELECT value FROM meta WHERE key = 'deletion_clock'").fetchall())
        return len(readings) >= 3

    return condition


def clock(base, ahead):
    """The environment of a worker whose wall clock is ahead."""
    libraries = f"{os.environ['FAULTS_LIBRARY']} {base / 'wrong_clock.so'}"
    return {"LD_PRELOAD": libraries, "CLOCK_WRONG_BY": str(ahead)}


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=3) as one:
        for name in template.names[:ENDED]:
            # 75: the token server knows no revocation.
            one.run("grants", "disconnect", name, "--yes", expect=(0, 75))
            del one.google.accounts[name]
        before = counts_of(one.database)
        filled = {"users": GRANTS + DELETED, "sessions": GRANTS - ENDED, "grants": GRANTS, "known": GRANTS}
        assert before == filled, "the store is filled"
        for ahead in [0, *(one.chance.randrange(DAY, 800 * DAY) for _ in range(RESTARTS)), 0]:
            worker = one.start(*FLAGS, **clock(base, ahead))
            assert worker.wait_for(has_cleaned_up(one.database), 60, "the clean-up has run"), worker.output()
            target = one.google.requests + GRANTS // 2
            worker.wait_for(lambda t=target: one.google.requests >= t, 60, "the worker refreshes")
            environment = {**one.environment(), **clock(base, ahead)}
            forgotten = command(one.arguments(), "users", "forget", *FLAGS, environment=environment)
            pause(one.chance.random())
            is_killed = bool(ahead) and one.chance.random() < 0.5
            one.note(f"{ahead // DAY} days ahead, {'killed' if is_killed else 'stopped'}")
            if is_killed:
                worker.end()
            else:
                assert worker.stop() == 0, f"the worker stops in order; it wrote: {worker.output()}"
            assert counts_of(one.database) == before, f"nothing is deleted; users forget wrote: {forgotten.stderr}"
        counts = verify(one)
        check_integrity(one.database)
        return {**counts, "restarts": RESTARTS}, one.notes
