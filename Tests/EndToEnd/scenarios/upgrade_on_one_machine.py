"""A worker on SQLite is replaced by a version with a newer schema while systemd holds its socket: requests wait for the
new one, and none gets a 503."""

import itertools
import socket
import threading
import time

from accounts import SERVICE_KEY, Accounts, Listener
from expectations import wait_for
from harness import NEXT_WORKER, WORKER, Skipped, passing

GRANTS = 20


def scenario(fixture):
    if not NEXT_WORKER.exists():
        raise Skipped("the next version is missing: run `make build`, or name a debug build as NEXT_WORKER")
    accounts = Accounts(fixture, start=False)
    fixture.import_grants(fixture.sandbox.create(GRANTS))
    users = list(fixture.grants())
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener = Listener(listening.getsockname()[1])
    extra = ["--listen-internal", "systemd:internal", "--services-file", fixture.folder / "services.json"]

    def start(program, environment=None):
        prefix = passing(listening, "internal", program)
        return fixture.start(*extra, prefix=prefix, environment=environment, pass_fds=[listening.fileno()])

    worker = start(WORKER).wait_started()
    wait_for(lambda: fixture.states() == {"active": GRANTS}, 60, "every grant is active")
    times, failures, ends = [], [], threading.Event()

    def ask():
        for user in itertools.cycle(users):
            if ends.is_set():
                return
            began = time.monotonic()
            try:
                status = listener.get(f"/v1/grants/{user}/token?min_ttl=60", SERVICE_KEY).status
            except OSError as error:
                status = repr(error)
            if status != 200:
                failures.append(status)
            times.append(time.monotonic() - began)

    service = threading.Thread(target=ask, daemon=True)
    service.start()
    wait_for(lambda: len(times) > 50, 60, "the service gets tokens")
    usual = max(times)
    former = fixture.rows("PRAGMA user_version")[0]["user_version"]
    began = time.monotonic()
    worker.stop()
    stopped = time.monotonic()
    worker = start(NEXT_WORKER, {"NEXT_SCHEMA_STEPS": "additive"}).wait_started()
    started = time.monotonic()
    before = len(times)
    wait_for(lambda: len(times) > before + 50, 60, "the service gets tokens of the new worker")
    ends.set()
    service.join(60)
    version = fixture.rows("PRAGMA user_version")[0]["user_version"]
    assert version == former + 1, "the new version has its schema"
    worker.stop()
    listening.close()
    accounts.backend.shutdown()
    # A connection that the former worker had accepted, and not read, when it stopped.
    assert len(failures) <= 1 and 503 not in failures, f"at most that one fails: {failures}"
    return (
        f"stop {stopped - began:.2f} s, start {started - stopped:.2f} s; the longest of {len(times)} requests took "
        f"{max(times):.2f} s, before that {usual:.2f} s; failed: {failures}"
    )
