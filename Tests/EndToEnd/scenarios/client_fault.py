"""`invalid_client` for all: no grant changes, one alarm, the breaker opens, and the worker recovers on its own."""

import json
import time

from accounts import Listener
from expectations import wait_for
from ports import free_port

GRANTS = 200


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=20)
    fixture.generate_keys()
    fixture.import_grants(sandbox.create(GRANTS))
    internal = Listener(free_port())
    worker = fixture.start("--listen-internal", f"127.0.0.1:{internal.address}").wait_started()
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 60, "every grant was refreshed once")

    sandbox.settings(outage="invalid_client")
    wait_for(lambda: worker.events("breaker", change="opened", reason="invalid_client"), 60, "the breaker opened")
    wait_for(lambda: len(worker.events("breaker", change="probe")) >= 3, 60, "three probes")
    refused = sandbox.stats()["by_answer"]["invalid_client"]
    assert refused <= 64 + 10, "the open breaker stops the requests"
    google_answers(fixture, internal, refused)
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


def google_answers(fixture, internal, refused):
    """Status and page say what Google answers, how often, since when, and when it is asked again."""
    def waiting():
        """The client, unless it is being asked just now."""
        client = json.loads(fixture.run("status", "--json").stdout)["clients"][0]
        return client if client["next_probe_ms"] is not None else None

    client = wait_for(waiting, 60, "status says when Google is asked again")
    failure = client["failures"][0]
    assert (failure["code"], failure["status"]) == ("invalid_client", 401), "the last failure is Google's"
    assert failure["count"] >= refused, "every refusal is counted"
    assert failure["since"] < failure["last_at"], "it says since when"
    assert "HTTP 401 invalid_client: " in fixture.run("status").stdout, "people see it too"

    def page():
        return internal.get("/").expect(200).body.decode()

    assert "HTTP 401 invalid_client" in page(), "the page shows it"
    wait_for(lambda: "next probe in" in page(), 60, "the page says when too")
