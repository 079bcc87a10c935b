"""After a fail-over the old primary is writable again, and the worker's connections are cut one at a time.

A worker that lets one of them go back to the old server claims grants on one server and stores results on the other:
each of those results looks superseded, and the rotated token in it is lost.
"""

import json

from expectations import wait_for
from faults import Rounds, named

STORE = "postgres"

GRANTS = 60
CUTS = 8


def scenario(fixture):
    primary = fixture.server
    standby = primary.standby()
    rounds = Rounds(fixture, GRANTS)
    # The server does not tolerate a second use of a refresh token.
    fixture.sandbox.settings(strict_rotation=True)
    fixture.database = named(f"{primary.url},{standby.folder}", "worker")
    worker = fixture.start("--max-rate", "1000").wait_started()
    rounds.begin()
    rounds.wait_stored(30, "a round before the fail-over")

    primary.wait_until_replayed(standby)
    primary.stop("immediate")
    standby.promote()
    fixture.server = standby
    rounds.begin()
    rounds.wait_stored(60, "a round after the fail-over")
    wait_for(lambda: worker.events("alarm", kind="database_failed_over"), 60, "an alarm about the fail-over")

    # The old primary is first in the address and takes writes again.
    primary.start()
    for _ in range(CUTS):
        cut_oldest(standby)
        rounds.begin()
        rounds.wait_stored(60, "a round with the old primary beside the new one")
    assert sessions(primary) == [], "the worker leaves the old primary"
    alarms = worker.events("alarm", kind="database_failed_over")
    assert len(alarms) == 1, "the fail-over raises one alarm"
    voids = worker.events("refresh", outcome="void")
    assert not voids, "no result is void"
    lost = lost_tokens(fixture)
    assert not lost, "each stored token is the newest that was issued"
    assert fixture.states() == {"active": GRANTS}, "every grant is active"

    # A command, which starts without that knowledge, also finds the new primary, although the old one is named first.
    fixture.run("status", "--json")
    recorded = standby.query("SELECT value FROM meta WHERE key = 'server'")[0]["value"]
    assert recorded.split()[1] == "2", "the new timeline is recorded"
    worker.stop()
    return f"{GRANTS} grants, {rounds.rounds} rounds, {CUTS} connections cut, nothing lost"


def sessions(server):
    return server.query("SELECT pid, query FROM pg_stat_activity WHERE application_name = 'worker'")


def cut_oldest(server):
    """Ends the worker's oldest session, and waits until it is gone."""
    oldest = server.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'worker' ORDER BY backend_start LIMIT 1"
    )
    assert oldest, "the worker has a session at the new primary"
    pid = oldest[0]["pid"]
    server.execute(f"SELECT pg_terminate_backend({pid})")
    wait_for(lambda: all(row["pid"] != pid for row in sessions(server)), 60, "the session is gone")


def lost_tokens(fixture):
    """The users whose stored refresh token is not the newest that was issued."""
    before = fixture.database
    fixture.database = fixture.server.url
    lines = fixture.run("grants", "export", "--plaintext").stdout.splitlines()
    fixture.database = before
    stored = {line["user_id"]: line["refresh_token"] for line in map(json.loads, lines)}
    issued = {grant["email"]: grant["current_refresh_token"] for grant in fixture.sandbox.stats(grants=True)["grants"]}
    return [email for email, token in issued.items() if stored[email] != token]
