"""Signals, reload, log rotation, and one refresh shared by the daemon and `token`."""

import concurrent.futures
import json
import signal
import time

from expectations import wait_for


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600)
    fixture.generate_keys()

    def hold(grant):
        return sandbox.call("/control/grants/set", {"refresh_token": grant["refresh_token"], "hold": True})

    def release():
        return sandbox.call("/control/release", {})

    def requests():
        return sandbox.stats()["by_route"].get("token", 0)

    # `token` shares the daemon's refresh, and the exit codes 77 and 67 have their documented meaning.
    shared = sandbox.create_expired("shared@example.com")
    hold(shared)
    fixture.import_grants([shared])
    configuration = fixture.folder / "worker.conf"
    configuration.write_text("REFRESH_WORKER_LOG_LEVEL=notice\n")
    worker = fixture.start("--config", configuration).wait_started()
    sandbox.call("/control/wait?holding=1")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        callers = [pool.submit(fixture.run, "token", "shared@example.com") for _ in range(3)]
        wait_for(lambda: len(fixture.rows("SELECT * FROM workers")) == 4, 60, "three callers wait beside the daemon")
        release()
        tokens = {caller.result().stdout.strip() for caller in callers}
    assert len(tokens) == 1 and requests() == 1, "all callers get the token of one request"
    fixture.run("token", "nobody@example.com", expect=67)
    sandbox.change(shared, revoked=True)
    fixture.run("token", "shared@example.com", "--min-ttl", "86400", expect=77)
    assert fixture.grants()["shared@example.com"]["state"] == "disconnected", "the caller's refresh ends the grant"

    # Reload: the log level changes, the metrics file is opened again, and a bad file changes nothing.
    moved = worker.metrics.with_suffix(".1")
    worker.metrics.rename(moved)
    configuration.write_text("REFRESH_WORKER_LOG_LEVEL=debug\n")
    worker.signal(signal.SIGHUP)
    wait_for(lambda: "reloaded" in worker.errors.read_text(), 60, "the reload is reported")
    grant = sandbox.create_expired("later@example.com")
    fixture.import_grants([grant])
    wait_for(lambda: worker.events("refresh", outcome="refreshed"), 60, "the new file gets the lines")
    assert "debug refresh" in worker.errors.read_text(), "the new log level holds"
    # A setting that a reload does not apply is named each time, until a restart.
    configuration.write_text("REFRESH_WORKER_LOG_LEVEL=debug\nREFRESH_WORKER_SUMMARY_INTERVAL=7\n")
    for count in (1, 2):
        worker.signal(signal.SIGHUP)
        wait_for(
            lambda: worker.errors.read_text().count("settings=--summary-interval") == count, 60, f"named {count} times"
        )
    configuration.write_text("REFRESH_WORKER_LOG_LEVL=debug\n")
    worker.signal(signal.SIGHUP)
    wait_for(lambda: "LOG_LEVL" in worker.errors.read_text(), 60, "the bad key is named")
    assert worker.process.poll() is None, "the worker keeps running"

    # SIGTERM lets what is in flight finish.
    slow = sandbox.create_expired("slow@example.com")
    hold(slow)
    fixture.import_grants([slow])
    sandbox.call("/control/wait?holding=1")
    worker.signal(signal.SIGTERM)
    wait_for(lambda: worker.events("stopping", in_flight=1), 60, "the worker stops")
    release()
    assert worker.process.wait(timeout=60) == 0, "a graceful stop exits with 0"
    assert worker.events("refresh", outcome="refreshed")[-1], "the result in flight is stored"
    assert fixture.grants()["slow@example.com"]["lease_owner"] is None, "the stop leaves no lease"

    # A request that does not finish is abandoned at the deadline, and a second signal does not wait for it.
    stuck = sandbox.create_expired("stuck@example.com")
    hold(stuck)
    fixture.import_grants([stuck])
    worker = fixture.start("--stop-deadline", "2", "--summary-interval", "1").wait_started()
    sandbox.call("/control/wait?holding=1")
    wait_for(lambda: worker.events("summary"), 60, "a summary comes after its interval")
    worker.signal(signal.SIGTERM)
    assert worker.process.wait(timeout=60) == 0, "the stop ends at its deadline"
    assert not fixture.grants()["stuck@example.com"]["lease_owner"], "the stop leaves no lease of the worker"
    # It was sent, so it may have been processed: it is tried again after a pause.
    assert fixture.grants()["stuck@example.com"]["state"] == "retrying", (
        "a request with an unknown outcome leaves its grant retrying"
    )
    worker = fixture.start("--stop-deadline", "600").wait_started()
    wait_for(lambda: fixture.grants()["stuck@example.com"]["lease_owner"], 60, "it is tried again")
    sandbox.call("/control/wait?holding=1")
    worker.signal(signal.SIGTERM)
    wait_for(lambda: worker.events("stopping", reason="SIGTERM"), 60, "the first signal is handled")
    asked = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.process.wait(timeout=60) == 143, "the second signal ends the worker at once"
    assert time.monotonic() - asked < 20, "the second signal does not wait"
    release()

    # Cron alone also does the work, and reports it in one line.
    result = fixture.run("--run-once", expect=None)
    assert result.stdout.splitlines()[-1].startswith('{"event":"run_once","due":'), "the summary is the last line"
    log = fixture.folder / "once.jsonl"
    fixture.run("--run-once", "--metrics-log", log, expect=None)
    last = json.loads(log.read_text().splitlines()[-1])
    assert last["event"] == "run_once", "a metrics log in a file ends with the summary too"
    return f"{requests()} requests"
