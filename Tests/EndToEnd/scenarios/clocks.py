"""The wall clock jumps an hour forward and back, and one of two workers is stopped for minutes: nothing is lost or
doubled.

STOPPED_SECONDS sets the length of the stop: a minute by default.
"""

import os
import pathlib
import signal
import threading
import time

from expectations import wait_for
from integrity import damage

GRANTS = 300
LIFETIME = 60
STOPPED = float(os.environ.get("STOPPED_SECONDS", "60"))


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=LIFETIME, latency_ms=30)
    fixture.generate_keys()
    fixture.import_grants(sandbox.create(GRANTS))
    clock = fixture.folder / "clock"
    clock.write_text("+0")
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    assert library, "libfaketime is installed (package faketime)"
    fake = {
        "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        # The worker compares the times of its database file, which a step of the clock does not change.
        "NO_FAKE_STAT": "1",
    }
    first = fixture.start(environment=fake).wait_started()
    second = fixture.start(environment=fake).wait_started()
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 90, "every grant was refreshed once")

    clock.write_text("+3600")
    wait_for(lambda: first.events("clock_step") and second.events("clock_step"), 60, "the step forward is noticed")
    ahead = time.time() * 1000 + 1_800_000
    wait_for(
        lambda: all(row["access_obtained_at"] > ahead for row in fixture.rows()), 90, "all were refreshed an hour ahead"
    )
    clock.write_text("+0")
    back = time.time() * 1000
    wait_for(
        lambda: all(back <= row["access_obtained_at"] <= time.time() * 1000 for row in fixture.rows()),
        120, "after the step back all are refreshed by the true clock",
    )

    fixture.suspend_between_transactions(second)
    pause = threading.Event()
    deadline = time.monotonic() + STOPPED
    while time.monotonic() < deadline:
        moment = time.time() * 1000
        dead = [row["user_id"] for row in fixture.rows() if row["access_expires_at"] <= moment - 40_000]
        assert not dead, "every grant keeps a valid token while one worker is stopped"
        pause.wait(1)
    second.signal(signal.SIGCONT)
    moment = time.time() * 1000
    wait_for(lambda: all(row["last_success_at"] > moment for row in fixture.rows()), 90, "both work on")
    first.stop()
    second.stop()
    stats = sandbox.stats()
    assert stats["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
    assert fixture.states() == {"active": GRANTS}, "every grant is active"
    assert damage(fixture) == {}, "the database is intact"
    return f"{stats['by_answer']['ok']} refreshes, one worker stopped for {STOPPED:.0f} s"
