"""`kill -9` at fifty random moments with rotation on: every grant refreshes afterwards and none is lost."""

import random
import time

from expectations import wait_for
from integrity import damage

GRANTS = 300
KILLS = 50


def scenario(fixture):
    chance = random.Random(2)
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=20, rotation=True, latency_ms=20, latency_jitter_ms=60)
    fixture.generate_keys()
    fixture.import_grants(sandbox.create(GRANTS))
    for _ in range(KILLS):
        worker = fixture.start().wait_started()
        before = sandbox.stats()["by_route"].get("token", 0)
        # The moment is counted in requests, not in time, so that it is in the middle of the work.
        wanted = before + chance.randint(1, 12)
        deadline = time.monotonic() + 45
        while sandbox.stats()["by_route"].get("token", 0) < wanted and time.monotonic() < deadline:
            pass
        worker.kill()
        assert damage(fixture) == {}, "the database is intact after a kill"

    restarted = time.time() * 1000
    worker = fixture.start().wait_started()
    wait_for(
        lambda: all((row["last_success_at"] or 0) > restarted for row in fixture.rows()),
        120, "every grant refreshes after the last restart",
    )
    worker.stop()
    assert fixture.states() == {"active": GRANTS}, "every grant is active"
    lost = fixture.rows("SELECT count(*) AS n FROM grant_events WHERE to_state NOT IN ('active', 'retrying')")[0]["n"]
    assert lost == 0, "no grant was ever given up"
    stats = sandbox.stats()
    assert stats["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
    assert damage(fixture) == {}, "the database is intact"
    return f"{KILLS} kills, {stats['by_answer'].get('ok', 0)} refreshes"
