"""Grants that were imported with a wrong client id: status, /readyz and the metrics say so, until they are replaced."""

import json
import time

from accounts import Listener
from expectations import wait_for
from harness import CLIENT
from ports import free_port

GRANTS = 5
OTHER = "999-other.apps.googleusercontent.com"
TWO_HOURS = 2 * 3600 + 60
KINDS = {"grants_expired", "many_retrying", "client_without_success"}


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(clients=[CLIENT, OTHER])
    grants = [sandbox.create_expired(f"user{n}@example.com", client_id=OTHER) for n in range(GRANTS)]
    for grant in grants:
        grant["expires_at"] = time.time() - TWO_HOURS
    fixture.generate_keys()
    if not fixture.server:
        unknown = fixture.run("status", "--json", expect=2)
        assert "does not exist" in unknown.stderr, "without a database the status is unknown"
    fixture.import_grants(grants, client_id=CLIENT)

    internal = Listener(free_port())
    worker = fixture.start("--listen-internal", f"127.0.0.1:{internal.address}").wait_started()
    wait_for(lambda: fixture.states() == {"retrying": GRANTS}, 60, "every refresh fails")

    report = json.loads(fixture.run("status", "--json", expect=4).stdout)
    concerns = {concern["kind"]: concern for concern in report["concerns"]}
    assert report["verdict"] == "now" and set(concerns) >= KINDS, "status names each concern"
    assert concerns["grants_expired"]["count"] == GRANTS and report["expired"] == GRANTS, "all grants have expired"
    assert concerns["client_without_success"]["client_id"] == CLIENT, "the client id is named"
    assert concerns["grants_expired"]["runbook"] == "docs/runbook.md#grants_expired", "it names the runbook"
    text = fixture.run("status", expect=4).stdout
    assert "is the client id right?" in text and "docs/runbook.md#many_retrying" in text, "people see it too"

    def shown():
        details = internal.get("/readyz").expect(200).json
        return details["ready"] and {concern["kind"] for concern in details["concerns"]} >= KINDS

    wait_for(shown, 60, "/readyz is ready, and its details have the same concerns")
    metrics = metrics_of(internal)
    assert metrics[f'refresh_worker_grants_expired{{client="{CLIENT}"}}'] == GRANTS, "the metrics count them"
    assert metrics[f'refresh_worker_oldest_expired_seconds{{client="{CLIENT}"}}'] > TWO_HOURS - 60, "and since when"
    concern = 'refresh_worker_concerns{kind="client_without_success",severity="now"}'
    assert metrics[concern] == 1, "the concern is a metric"
    assert metrics["refresh_worker_well"] == 0, "the verdict is a metric"
    refused = internal.get("/v1/grants/user0@example.com/token").expect(503).json
    assert refused["error"] == "no_services", "without services the routes of tokens say so"

    fixture.import_grants(grants, "--replace")
    wait_for(lambda: fixture.states() == {"active": GRANTS}, 60, "with the right client id every grant is refreshed")

    def remaining():
        report = json.loads(fixture.run("status", "--json").stdout)
        return {concern["kind"] for concern in report["concerns"]}

    wait_for(lambda: remaining() == set(), 60, "the alarm about the wrong client id has ended with its last grant")
    wait_for(lambda: metrics_of(internal)["refresh_worker_well"] == 1, 60, "the metrics say so too")
    metrics = metrics_of(internal)
    assert metrics[f'refresh_worker_grants_expired{{client="{OTHER}"}}'] == 0, "nothing has expired"
    assert metrics['refresh_worker_alarms_total{kind="client_unproven"}'] == 1, "it was raised once"
    worker.stop()
    assert remaining() == {"no_worker"}, "without a worker status says so at once, although no token has expired"
    fixture.run("--run-once")
    assert remaining() == set(), "between two passes of a timer no worker is missing"


def metrics_of(internal):
    lines = internal.get("/metrics").expect(200).body.decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
