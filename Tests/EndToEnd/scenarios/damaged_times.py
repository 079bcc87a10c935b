"""Stored times of which the highest bits have flipped: no worker and no command ends with a trap, and the other grants
are refreshed."""

import re
import time

from accounts import Accounts, user_token
from expectations import wait_for
from harness import BOOT

EXTREMES = {"low": -(1 << 63), "high": (1 << 63) - 1}
OTHER_TABLES = ["grant_events", "notices", "sessions", "users"]


def scenario(fixture):
    fixture.sandbox.settings(lifetime=3600)
    accounts = Accounts(fixture)
    known = fixture.sandbox.create(email="known@example.com")[0]
    accounts.sign_in(known)
    accounts.connect(known, user_token("known")).expect(201)
    fixture.sandbox.call("/control/grants/set", {"email": "known@example.com", "revoked": True})
    accounts.expire("known")
    accounts.vend("known").expect(409)
    columns = sorted(name for name in fixture.grants()["known"] if re.search(r"(_at|_until|since|used_on)$", name))
    columns = [name for name in columns if not name.startswith("lease")]
    users = {f"{column}-{end}@example.com": (column, EXTREMES[end]) for column in columns for end in EXTREMES}
    fixture.import_grants([fixture.sandbox.create(email=user)[0] for user in ["healthy", *users]])
    accounts.worker.stop()

    for user, (column, value) in users.items():
        if column == "due_at":
            fixture.set_due(value, user)
        else:
            fixture.write(f"UPDATE grants SET {column} = ? WHERE user_id = ?", value, user)
    commands_and_worker(fixture, accounts, users)
    # Old rows are removed, so they come last.
    for value in sorted(EXTREMES.values(), reverse=True):
        for table in OTHER_TABLES:
            rows = fixture.rows(f"SELECT * FROM {table}")
            assert rows, f"there are rows of {table}"
            for column in rows[0]:
                if re.search(r"(^at|_at|_until|_since)$", column):
                    fixture.write(f"UPDATE {table} SET {column} = ? WHERE {column} IS NOT NULL", value)
        commands_and_worker(fixture, accounts, ["known", "healthy"])
    for low, high in [(low, high) for low in EXTREMES.values() for high in EXTREMES.values()]:
        note(fixture, "clock_reading", f"{low} {high} {BOOT}")
        for name in ("last_pass", "last_security_event", "last_code_exchange"):
            note(fixture, name, low)
        commands_and_worker(fixture, accounts, ["healthy"])
    accounts.close()
    return f"{len(users)} damaged times of grants"


def note(fixture, name, value):
    fixture.write("DELETE FROM meta WHERE key = ?", name)
    fixture.write("INSERT INTO meta (key, value) VALUES (?, ?)", name, str(value))


def commands_and_worker(fixture, accounts, users):
    """Lists, shows, starts, vends, refreshes and stops."""
    for command in ("status", "grants list", "grants export --plaintext", "users list", "users show known"):
        done(fixture.run(*command.split(), expect=None))
    for user in users:
        done(fixture.run("grants", "show", user, expect=None))
    worker = accounts.start()
    for user in users:
        for lifetime in (0, 60):
            answer = accounts.vend(user, min_ttl=lifetime)
            assert answer.status < 500, f"{user} gets a token, or the reason why not: {answer.status} {answer.body}"
    accounts.internal.get("/status").expect(200)
    accounts.internal.get("/metrics").expect(200)
    count = len(worker.events("refresh", outcome="refreshed"))
    fixture.set_due(int(time.time() * 1000), "healthy")
    wait_for(lambda: len(worker.events("refresh", outcome="refreshed")) > count, 60, "a grant is refreshed")
    worker.stop()


def done(result):
    assert 0 <= result.returncode < 64, f"the command ends without a trap: {result.returncode} {result.stderr}"
