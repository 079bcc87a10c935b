"""Google refuses every grant by mistake for ten minutes, with other codes than `invalid_grant`: few users are shown as
disconnected, and those for a moment. The alarm and the status tell, and afterwards every grant is active again.

Clocks that are ahead take the place of the time until the confirmations.
"""

import time

from accounts import Accounts
from expectations import wait_for
from faults import wrong_clock

GRANTS = 40
CODES = ["invalid_rapt", "admin_policy_enforced"]
CONFIRMED_AFTER = [300, 900]  # RefreshRules.confirmationTimes
STORE = "sqlite"  # On PostgreSQL the server's clock decides: see `wave`.


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600)
    grants = [sandbox.create_expired(f"user{number}@gmail.com") for number in range(GRANTS)]
    fixture.import_grants(grants)
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 60, "every grant was refreshed once")
    for number, grant in enumerate(grants):
        sandbox.change(grant, answer={"preset": CODES[number % 2]})
    fixture.set_due(int(time.time() * 1000))
    wait_for(lambda: fixture.states() == {"retrying": GRANTS}, 60, "every grant is in doubt")
    assert {row["reason"] for row in fixture.rows()} == {"refusal_unconfirmed"}, "the reason says so"
    # The metrics log gathers lines for some milliseconds.
    wait_for(lambda: accounts.worker.events("alarm", kind="grants_in_doubt"), 60, "the alarm is raised")
    status = fixture.run("status", expect=None)
    assert status.returncode == 3 and f"grants in doubt: {GRANTS}" in status.stdout, "the status tells"
    wait_for(lambda: shown(accounts, "connected") == shown(accounts, "disconnected"), 60, "the backend knows it")
    ended = shown(accounts, "disconnected")
    assert ended <= 3, "few users were shown as disconnected"

    start_ahead(fixture, accounts, CONFIRMED_AFTER[0])
    wait_for(lambda: len(accounts.worker.events("refresh", outcome="held")) >= GRANTS, 60, "each was asked again")
    assert fixture.states() == {"retrying": GRANTS}, "no second refusal in the wave ends a grant"

    for grant in grants:
        sandbox.change(grant, answer=None)
    start_ahead(fixture, accounts, CONFIRMED_AFTER[1])
    wait_for(lambda: fixture.states() == {"active": GRANTS}, 60, "every grant is active")
    accounts.close()
    return f"{ended} of {GRANTS} shown as disconnected for a moment"


def shown(accounts, change):
    """The number of notices that a user's grant is connected, or disconnected."""
    return [notice["type"] for notice in accounts.backend.notices].count(f"grant.{change}")


def start_ahead(fixture, accounts, seconds):
    """Starts the worker again with clocks that are ahead."""
    accounts.worker.stop()
    clocks = {"CLOCK_WRONG_BY": str(seconds), "BOOT_CLOCK_AHEAD_BY": str(seconds)}
    accounts.start(environment={"LD_PRELOAD": wrong_clock(fixture), **clocks})
