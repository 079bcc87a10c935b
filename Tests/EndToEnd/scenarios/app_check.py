"""App Check is enforced for one client, and Google refuses the worker's refreshes: no grant ends or shows as
disconnected, one alarm names App Check, the other client goes on, and afterwards everything is refreshed at once.
"""

import json
import time

from accounts import Accounts, user_token
from expectations import wait_for
from harness import CLIENT

GRANTS = 30
OTHERS = 5
OTHER = "999-other.apps.googleusercontent.com"
CODE = "app_not_authentic"
SECTION = "docs/runbook.md#google-verifies-the-app"
# The breaker opens after this time without a success: ConsecutiveClientErrors.minimumSpan.
UNTIL_OPENED = 60
# The fourth probe is more than ten seconds after the opening: a shorter fault is no outage (Breaker.minimumOutage).
PROBES = 4
CONCERNS = {"breaker_open", "client_fault", "grants_expired", "many_retrying"}


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(clients=[CLIENT, OTHER], lifetime=20)
    accounts = Accounts(fixture, "--client-id", OTHER, start=False)
    fixture.import_grants(sandbox.create(GRANTS))
    fixture.import_grants(sandbox.create(email="ada@example.com"), user_id="ada")
    for number in range(OTHERS):
        fixture.import_grants(sandbox.create(email=f"other{number}@example.com", client_id=OTHER))
    fixture.set_due(int(time.time() * 1000))
    accounts.start()
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 60, "every grant was refreshed once")

    sandbox.settings(app_check=[CLIENT])
    fixture.import_grants([sandbox.create_expired("bob@example.com")], user_id="bob")
    refused = enforced(fixture, accounts)

    sandbox.settings(app_check=[])
    wait_for(lambda: accounts.worker.events("breaker", change="closed"), 30, "a probe closes the breaker")
    closed = time.monotonic()
    everything = {"active": GRANTS + 1 + OTHERS + 1}
    wait_for(lambda: fixture.states() == everything, 15, "every grant is refreshed at once")
    took = time.monotonic() - closed
    assert fixture.grants()["bob"]["is_proven"], "the new grant is good"
    wait_for(lambda: not concerns(fixture) & CONCERNS, 60, "status has no concern about it any more")
    never_ended(accounts)
    assert len(accounts.worker.events("alarm")) == 1, "there was one alarm"
    accounts.close()
    return f"{refused} refusals, all refreshed within {took:.0f} s"


def enforced(fixture, accounts):
    """While App Check is enforced; returns how many requests were refused."""
    opened = wait_for(
        lambda: accounts.worker.events("breaker", change="opened"), UNTIL_OPENED + 60, "the breaker opens"
    )
    assert [(event["client"], event["reason"]) for event in opened] == [(CLIENT, CODE)], "for the one client"
    alarms = wait_for(lambda: accounts.worker.events("alarm"), 10, "an alarm is raised")
    assert [(alarm["kind"], alarm["client"]) for alarm in alarms] == [("client_fault", CLIENT)], "one alarm is raised"
    text = alarms[0]["text"]
    assert "App Check" in text and SECTION in text, "it names App Check and the section of the runbook"

    def refusals():
        return fixture.sandbox.stats()["by_answer"]["invalid_request"]

    before = refusals()
    wait_for(lambda: len(accounts.worker.events("breaker", change="probe")) >= PROBES, 60, f"{PROBES} probes")
    assert refusals() - before <= 20, "the open breaker stops the requests"

    report = json.loads(fixture.run("status", "--json", *accounts.extra).stdout)
    counts = report["grants"]
    assert counts["active"] + counts["retrying"] == counts["total"], "status shows every grant as connected"
    client = next(one for one in report["clients"] if one["client_id"] == CLIENT)
    assert client["breaker_reason"] == CODE, "status has the reason"
    assert (client["failures"][0]["code"], client["failures"][0]["status"]) == (CODE, 400), "and Google's answer"
    texts = [concern["text"] for concern in report["concerns"] if concern["kind"] == "breaker_open"]
    assert len(texts) == 1 and CODE in texts[0], "one concern says what Google answers"
    for user in ("ada", "bob"):
        assert accounts.is_connected(user_token(user)), "the profile says connected"
    wait_for(lambda: others_are_fresh(fixture), 30, "the other client's grants are refreshed")
    never_ended(accounts)
    return refusals()


def others_are_fresh(fixture):
    """Whether every grant of the other client is active, with a valid token."""
    moment = time.time() * 1000
    rows = [row for row in fixture.rows() if row["client_id"] == OTHER]
    return len(rows) == OTHERS and all(
        row["state"] == "active" and row["access_expires_at"] > moment for row in rows
    )


def never_ended(accounts):
    """No grant has ended, for a moment or for good, and the backend was told of none."""
    states = {event["to"] for event in accounts.worker.events("state")}
    assert states <= {"active", "retrying"}, "no grant has ended"
    kinds = {notice["type"] for notice in accounts.backend.notices}
    assert "grant.disconnected" not in kinds, "the backend is told of no end"


def concerns(fixture):
    return {concern["kind"] for concern in json.loads(fixture.run("status", "--json").stdout)["concerns"]}
