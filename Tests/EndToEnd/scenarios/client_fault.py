"""`invalid_client` for all: no grant changes, one alarm, the breaker opens, and the worker recovers on its own."""

import time

from expectations import wait_for

GRANTS = 200


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=20)
    fixture.generate_keys()
    fixture.import_grants(sandbox.create(GRANTS))
    worker = fixture.start().wait_started()
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 60, "every grant was refreshed once")

    sandbox.settings(outage="invalid_client")
    wait_for(lambda: worker.events("breaker", change="opened", reason="invalid_client"), 30, "the breaker opened")
    wait_for(lambda: len(worker.events("breaker", change="probe")) >= 3, 60, "three probes")
    refused = sandbox.stats()["by_answer"]["invalid_client"]
    assert refused <= 64 + 10, "the open breaker stops the requests"
    sandbox.settings(outage="none")
    wait_for(lambda: worker.events("breaker", change="closed"), 60, "the breaker closed")
    moment = time.time() * 1000
    wait_for(lambda: all(row["access_expires_at"] > moment for row in fixture.rows()), 60, "every token is fresh again")
    worker.stop()

    assert fixture.states() == {"active": GRANTS}, "every grant is active"
    moves = fixture.rows("SELECT count(*) AS n FROM grant_events WHERE kind = 'state'")[0]["n"]
    assert moves == 0, "no grant changes its state"
    alarms = worker.events("alarm")
    assert len(alarms) == 1, "the fault raises one alarm"
    return f"{refused} refused in all"
