"""`invalid_client` for all: no grant changes, one alarm, the breaker opens, and the worker recovers on its own."""

import time

from harness import check, wait_for

GRANTS = 200


def scenario(place):
    sandbox = place.sandbox
    sandbox.settings(lifetime=20)
    place.generate_keys()
    place.bring_in(sandbox.create(GRANTS))
    worker = place.start().wait_started()
    wait_for(lambda: all(row["is_proven"] for row in place.rows()), 60, "every grant was refreshed once")

    sandbox.settings(outage="invalid_client")
    wait_for(lambda: worker.events("breaker", change="opened", reason="invalid_client"), 30, "the breaker opened")
    wait_for(lambda: len(worker.events("breaker", change="probe")) >= 3, 60, "three probes")
    refused = sandbox.stats()["by_answer"]["invalid_client"]
    check(refused <= 64 + 10, f"{refused} requests although the breaker was open")
    sandbox.settings(outage="none")
    wait_for(lambda: worker.events("breaker", change="closed"), 60, "the breaker closed")
    moment = time.time() * 1000
    wait_for(lambda: all(row["access_expires_at"] > moment for row in place.rows()), 60, "every token is fresh again")
    worker.stop()

    check(place.states() == {"active": GRANTS}, f"states: {place.states()}")
    moves = place.rows("SELECT count(*) AS n FROM grant_events WHERE kind = 'state'")[0]["n"]
    check(moves == 0, f"{moves} grants changed their state")
    alarms = worker.events("alarm")
    check(len(alarms) == 1, f"{len(alarms)} alarms: {alarms}")
    return f"{refused} refused in all"
