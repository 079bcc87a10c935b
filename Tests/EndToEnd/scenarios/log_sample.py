"""A sample of the metrics log: lines of plain successes are left out, counted exactly, and no other line is missing."""

import signal

from accounts import Listener
from expectations import wait_for
from ports import free_port

GRANTS = 200
REVOKED = 3
SAMPLE = 7


def scenario(fixture):
    grants = fixture.sandbox.create(GRANTS)
    fixture.generate_keys()
    fixture.import_grants(grants)
    refused = fixture.run("--run-once", "--log-sample", "vend=100", expect=64).stderr
    assert "refresh.succeeded=N" in refused, "lines of an audit cannot be left out"

    internal = Listener(free_port())
    configuration = fixture.folder / "worker.conf"
    configuration.write_text(f"REFRESH_WORKER_LOG_SAMPLE=refresh.succeeded={SAMPLE}\n")
    worker = fixture.start(
        "--config", configuration, "--summary-interval", "1", "--listen-internal", f"127.0.0.1:{internal.address}"
    ).wait_started()

    def counted(outcome="refreshed"):
        """The refreshes in the metrics, which leave none out."""
        sample = f'refresh_worker_refreshes_total{{outcome="{outcome}"}} '
        lines = internal.get("/metrics").expect(200).body.decode().splitlines()
        return next(int(line.removeprefix(sample)) for line in lines if line.startswith(sample))

    def sampled():
        return worker.events("refresh", stands_for=SAMPLE)

    def is_complete(count):
        """Whether lines and summaries account for this many refreshes."""
        lines = len(worker.events("refresh", outcome="refreshed"))
        return lines + sum(event["not_logged"] for event in worker.events("summary")) == count == counted()

    fixture.set_due(0)
    wait_for(lambda: counted() >= GRANTS, 60, "every grant is refreshed")
    wait_for(lambda: is_complete(GRANTS), 60, "lines and summaries account for every refresh")
    first = len(sampled())
    assert first == len(worker.events("refresh", outcome="refreshed")) == GRANTS // SAMPLE, "one line of seven"

    # A reload leaves all of them out; whatever happens to a grant is still there.
    for grant in grants[:REVOKED]:
        fixture.sandbox.change(grant, revoked=True)
    configuration.write_text("REFRESH_WORKER_LOG_SAMPLE=refresh.succeeded=0\n")
    worker.signal(signal.SIGHUP)
    wait_for(lambda: "reloaded" in worker.errors.read_text(), 60, "the reload is reported")
    fixture.set_due(0)
    wait_for(lambda: counted() == 2 * GRANTS - REVOKED, 60, "every other grant is refreshed again")
    wait_for(lambda: is_complete(2 * GRANTS - REVOKED), 60, "the summaries count those without a line")
    assert len(sampled()) == first, "no plain success has a line"
    wait_for(lambda: len(worker.events("state", to="disconnected")) >= REVOKED, 60, "each lost grant has its lines")
    gone = worker.events("refresh", outcome="disconnected", verdict="invalid_grant")
    assert len(gone) == REVOKED == len(worker.events("state", to="disconnected")), "each lost grant has its lines once"
    worker.stop()
    return f"{first} lines for {GRANTS} refreshes, then none"
