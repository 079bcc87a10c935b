"""`invalid_grant` for two thirds of all grants, for longer than every grant's next refresh: afterwards every grant is
active again.

The worker confirms a refusal five minutes after it. It is restarted with clocks that are five minutes ahead, so that
the scenario does not wait for that time.
"""

import time

from expectations import wait_for
from faults import wrong_clock

GRANTS = 600
WAVE = 90
CONFIRMED_AFTER = 300  # RefreshRules.firstConfirmationAfter


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=60)
    fixture.generate_keys()
    fixture.import_grants(sandbox.create(GRANTS))
    worker = fixture.start().wait_started()
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 90, "every grant was refreshed once")

    sandbox.settings(wave_rate=0.66)
    began = time.monotonic()
    wait_for(lambda: time.monotonic() > began + WAVE, WAVE + 5, "the wave lasts", pause=1)
    sandbox.settings(wave_rate=0)
    refused = sandbox.stats()["by_answer"]["invalid_grant"]
    assert refused > GRANTS / 2, "the refusals form a wave"
    assert refused < GRANTS * 1.2, "held grants are not asked again and again"
    worker.stop()
    recalled = len(worker.events("state", **{"from": "disconnected", "to": "retrying"}))

    ahead = str(CONFIRMED_AFTER)
    clocks = {"LD_PRELOAD": wrong_clock(fixture), "CLOCK_WRONG_BY": ahead, "BOOT_CLOCK_AHEAD_BY": ahead}
    if fixture.server:
        # There the server's clock decides.
        fixture.server.stop("fast")
        fixture.server.start(environment=clocks)
    later = fixture.start(environment=clocks)
    wait_for(lambda: fixture.states() == {"active": GRANTS}, 120, "every grant is active", pause=1)
    later.stop()
    return f"{refused} refusals, {recalled} recalled, all active after their confirmation"
