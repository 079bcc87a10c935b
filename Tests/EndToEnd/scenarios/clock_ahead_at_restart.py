"""The worker restarts while the wall clock is a month ahead: nothing is deleted for good until a person confirms."""

import json

from accounts import Accounts
from expectations import wait_for
from faults import wrong_clock

SESSIONS = 20
AHEAD = 31 * 86_400  # seconds: longer than a session lives


def scenario(fixture):
    accounts = Accounts(fixture)
    pairs = [accounts.sign_in(grant) for grant in fixture.sandbox.create(SESSIONS)]
    accounts.worker.stop()
    wrong = {"LD_PRELOAD": wrong_clock(fixture), "CLOCK_WRONG_BY": str(AHEAD)}
    ahead = ("env", *(f"{name}={value}" for name, value in wrong.items()))

    accounts.start(environment=wrong)
    wait_for_clean_up(fixture)
    assert sessions(fixture) == SESSIONS, "sessions stay while the clock is ahead"
    answer = accounts.public.post("/api/auth/refresh", {"refresh_token": pairs[0]["refresh_token"]})
    assert answer.status == 401 and sessions(fixture) == SESSIONS, "a token that seems expired ends no session"
    status = json.loads(fixture.run("status", "--json", prefix=ahead).stdout)
    assert "deletions_wait" in {concern["kind"] for concern in status["concerns"]}, "status says that deletions wait"
    clock = json.loads(fixture.run("store", "clock", "--json", prefix=ahead).stdout)
    assert abs(clock["lag_ms"] - AHEAD * 1000) < 60_000, "the clock of deletions has not followed"
    forget = ("users", "forget", "--forget-ended-after", "1", "--dry-run")
    assert "store clock --clock-is-right" in fixture.run(*forget, prefix=ahead).stderr, "users forget says it too"

    # The clock is right again.
    accounts.worker.stop()
    accounts.start()
    for pair in pairs:
        accounts.public.post("/api/auth/refresh", {"refresh_token": pair["refresh_token"]}).expect(200)
    assert json.loads(fixture.run("store", "clock", "--json").stdout)["lag_ms"] < 60_000, "deletions follow again"
    accounts.worker.stop()

    # A month passes unseen, and a person confirms the clock.
    accounts.start(environment=wrong)
    fixture.run("store", "clock", "--clock-is-right", prefix=ahead)
    wait_for(lambda: sessions(fixture) == 0, 60, "the sessions that have expired are deleted")
    status = json.loads(fixture.run("status", "--json", prefix=ahead).stdout)
    assert "deletions_wait" not in {concern["kind"] for concern in status["concerns"]}, "nothing waits any more"
    accounts.worker.stop()
    return f"{SESSIONS} sessions outlived a clock that was {AHEAD // 86_400} days ahead"


def sessions(fixture):
    return fixture.rows("SELECT count(*) AS count FROM sessions")[0]["count"]


def wait_for_clean_up(fixture):
    """Waits until the worker has begun three clean-ups: each stores a reading of the clock, as does the heartbeat."""
    readings = set()

    def is_done():
        readings.update(row["value"] for row in fixture.rows("SELECT value FROM meta WHERE key = 'deletion_clock'"))
        return len(readings) >= 6

    wait_for(is_done, 60, "the clean-up has run")
