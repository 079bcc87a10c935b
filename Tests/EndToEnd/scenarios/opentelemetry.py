"""Metrics for a collector of OpenTelemetry: its own messages read each body. A collector that hangs, refuses or floods
delays no refresh and no service."""

import re
import time

from accounts import Accounts
from collector import Collector, documented, value
from expectations import wait_for

HEADERS = {
    "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20secret%2C%20hush,x-team=core",
    "OTEL_SERVICE_NAME": "tokens",
    "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
    "OTEL_METRIC_EXPORT_INTERVAL": "1000",
}


def scenario(fixture):
    collector = Collector()
    accounts = Accounts(fixture, "--otlp-endpoint", collector.url, start=False)
    fixture.import_grants(fixture.sandbox.create(3))
    worker = accounts.start(environment=HEADERS)
    users = sorted(fixture.grants())
    for user in users:
        accounts.vend(user).expect(200)
    fixture.set_due(int(time.time() * 1000))
    wait_for(lambda: len(worker.events("refresh", outcome="refreshed")) == 3, 60, "three refreshes")
    collector.wait_for(2)

    has_right_content(collector, accounts)
    has_no_secret(collector, fixture, worker)
    longest = withstands(collector, accounts, users)
    collector = survives_refused_connections(collector, accounts, users)

    accounts.close()
    last = collector.metrics()
    assert value(last["refresh_worker.vends"], outcome="served") == accounts.vended, "the last metrics have all counts"
    passes(fixture, collector)
    collector.close()
    return f"{len(collector.requests)} requests; the slowest vend with a bad collector took {longest * 1000:.0f} ms"


def has_right_content(collector, accounts):
    accounts.vended = 3
    metrics = collector.metrics()
    units = documented()
    assert set(metrics) <= set(units), "the page has each metric that is sent"
    for name, metric in metrics.items():
        assert metric.get("unit", "") == units[name], f"the page has the unit of {name}"
        for key in ("sum", "histogram"):
            if key in metric:
                temporality = metric[key]["aggregationTemporality"]
                assert temporality == "AGGREGATION_TEMPORALITY_CUMULATIVE", f"{name} is cumulative"
    assert value(metrics["refresh_worker.refreshes"], outcome="refreshed") == 3, "it has the refreshes"
    assert value(metrics["refresh_worker.vends"], outcome="served") == 3, "it has the vends"
    assert value(metrics["refresh_worker.grants"], state="active") == 3, "it has the grants"
    assert value(metrics["refresh_worker.store.up"]) == 1, "it has the state of the database"
    histogram = metrics["refresh_worker.refresh.duration"]["histogram"]["dataPoints"][0]
    assert int(histogram["count"]) == sum(map(int, histogram["bucketCounts"])) == 3, "it has the durations"
    assert len(histogram["bucketCounts"]) == len(histogram["explicitBounds"]) + 1, "the last bucket has no bound"

    resource = collector.resource()
    assert resource["service.name"] == "tokens", "OTEL_SERVICE_NAME is used"
    assert resource["deployment.environment.name"] == "test", "OTEL_RESOURCE_ATTRIBUTES is used"
    assert resource["service.instance.id"] == accounts.worker.events("started")[0]["worker"], "it is the worker's name"

    # The same list as Prometheus gets. What has a name of its own by the conventions is left out here.
    text = accounts.internal.get("/metrics").expect(200).body.decode()
    families = {name for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE) if name.startswith("refresh_worker")}
    made = {prometheus_name(metric) for metric in metrics.values()}
    assert families <= made, "a collector makes the same names for Prometheus"


def prometheus_name(metric):
    suffix = {"s": "_seconds", "By": "_bytes", "{refresh}/s": "_per_second"}.get(metric.get("unit"), "")
    total = "_total" if metric.get("sum", {}).get("isMonotonic") else ""
    return metric["name"].replace(".", "_") + suffix + total


def has_no_secret(collector, fixture, worker):
    sent = b"".join(body for _, _, body in collector.requests).decode()
    for grant in fixture.grants().values():
        for name in ["user_id", "google_user_id"]:
            assert str(grant[name]) not in sent, f"no {name} is sent"
    headers = collector.requests[0][1]
    assert headers["api-key"] == "a secret, hush" and headers["x-team"] == "core", "the headers are sent"
    assert headers["Content-Type"] == "application/json", "the content is JSON"
    logs = worker.errors.read_text() + worker.metrics.read_text()
    assert "hush" not in logs and "hush" not in sent, "the headers are in no log"


def withstands(collector, accounts, users):
    """The longest vend while the collector hangs, floods and is busy."""
    longest = 0
    for mode in ["hang", "flood", "busy"]:
        collector.mode = mode
        wait_for(lambda: collector.seen[mode] > 0, 30, f"a request comes in the mode {mode}")
        began = time.monotonic()
        # Longer than the worker waits for an answer of the collector.
        while time.monotonic() - began < (12 if mode == "hang" else 3):
            for user in users:
                asked = time.monotonic()
                accounts.vend(user).expect(200)
                accounts.vended += 1
                longest = max(longest, time.monotonic() - asked)
        refreshed = len(accounts.worker.events("refresh", outcome="refreshed"))
        accounts.fixture.set_due(int(time.time() * 1000))
        wait_for(
            lambda: len(accounts.worker.events("refresh", outcome="refreshed")) == refreshed + 3, 10,
            f"grants are refreshed while the collector is in the mode {mode}",
        )
        collector.mode = "ok"
        collector.wait_for(2)
        metrics = collector.metrics()
        assert value(metrics["refresh_worker.vends"], outcome="served") == accounts.vended, "no count is lost"
    assert longest < 2, f"no vend waits for the collector: {longest:.3f} s"
    assert collector.most_open == 1, "one request is in flight"
    dropped = metrics["refresh_worker.telemetry.dropped"]
    assert value(dropped, signal="metrics", reason="failed") > 0, "what did not arrive is counted"
    assert failures_logged(accounts.worker) >= 2, "the log says it"
    return longest


def survives_refused_connections(collector, accounts, users):
    port = collector.port
    failures = failures_logged(accounts.worker)
    collector.close()
    for user in users:
        accounts.vend(user).expect(200)
        accounts.vended += 1
    wait_for(lambda: failures_logged(accounts.worker) > failures, 60, "the worker notices that nobody listens")
    collector = Collector(port)
    collector.wait_for(2)
    metrics = collector.metrics()
    assert value(metrics["refresh_worker.vends"], outcome="served") == accounts.vended, "no count is lost"
    return collector


def failures_logged(worker):
    return worker.errors.read_text().count("telemetry does not reach the collector")


def passes(fixture, collector):
    """A pass sends its metrics once, and ends in time although the collector hangs."""
    before = len(collector.bodies("/v1/metrics"))
    fixture.set_due(int(time.time() * 1000))
    fixture.run("--run-once", "--otlp-endpoint", collector.url)
    assert len(collector.bodies("/v1/metrics")) == before + 1, "a pass sends its metrics once"
    metrics = collector.metrics()
    assert value(metrics["refresh_worker.refreshes"], outcome="refreshed") == 3, "with what it has done"
    assert value(metrics["refresh_worker.store.up"]) == 1, "and with what is stored"
    assert value(metrics["refresh_worker.well"]) == 1, "and with the verdict"
    collector.mode = "hang"
    began = time.monotonic()
    fixture.run("--run-once", "--otlp-endpoint", collector.url)
    assert time.monotonic() - began < 10, "a pass does not wait for a collector that hangs"
    collector.mode = "ok"
