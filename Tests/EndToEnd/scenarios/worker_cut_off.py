"""One of two workers loses its way to Google: the other one refreshes all grants, and the alarm names the first."""

import json
import threading
import time

from expectations import wait_for
from faults import wait_until_all_reported, worker_name
from proxy import Proxy

STORE = "postgres"

GRANTS = 300
LIFETIME = 40
# The failed worker needs five seconds to know it, and the other one a scan to find the grants.
SILENCE = 60


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=LIFETIME, rotation=True)
    fixture.generate_keys()
    fixture.import_grants(sandbox.create(GRANTS))
    port = int(sandbox.url.rsplit(":", 1)[1])
    proxy = Proxy(port)
    way = ("--token-endpoint", f"http://127.0.0.1:{proxy.port}/token")
    cut = fixture.start(*way).wait_started()
    healthy = fixture.start().wait_started()
    wait_until_all_reported(fixture, 2)
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 90, "every grant was refreshed once")
    wait_for(lambda: not expired(fixture), 90, "every grant has a token")

    proxy.close()
    broken = time.monotonic()
    wait_for(lambda: cut.events("alarm", kind="endpoint_out_of_reach"), 60, "the worker knows that it is cut off")
    known = time.monotonic() - broken
    worst = 0
    pause = threading.Event()
    while time.monotonic() < broken + SILENCE:
        worst = max(worst, len(expired(fixture)))
        pause.wait(0.5)
    assert worst == 0, "every grant keeps a valid token: the healthy worker takes those of the other one"
    assert not healthy.events("alarm"), "the healthy worker sees no trouble"
    texts = concerns(fixture)
    assert len(texts) == 1 and worker_name(cut) in texts[0], "status names the worker"

    proxy = Proxy(port, proxy.port)
    wait_for(lambda: not concerns(fixture), 60, "the alarm ends with its cause", pause=1)
    moment = time.time() * 1000
    wait_for(lambda: all(row["last_success_at"] > moment for row in fixture.rows()), 90, "both refresh again")
    before = len(cut.events("refresh", outcome="refreshed"))
    expected = before + GRANTS // 3
    wait_for(lambda: len(cut.events("refresh", outcome="refreshed")) >= expected, 90, "the worker has its share back")
    cut.stop()
    healthy.stop()
    proxy.close()
    stats = sandbox.stats()
    assert stats["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
    assert fixture.states() == {"active": GRANTS}, "every grant is active"
    return f"known after {known:.0f} s, no token expired in {SILENCE} s"


def concerns(fixture):
    status = json.loads(fixture.run("status", "--json").stdout)
    return [concern["text"] for concern in status["concerns"] if concern["kind"] == "endpoint_out_of_reach"]


def expired(fixture):
    now = time.time() * 1000
    return [row["user_id"] for row in fixture.rows() if row["access_expires_at"] <= now]
