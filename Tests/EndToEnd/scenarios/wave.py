"""`invalid_grant` for two thirds of all grants, over after three minutes: afterwards every grant is active again.

AFTER_SECONDS sets how long the scenario watches the grants after the wave. By default it ends as soon as all have
recovered, after six minutes at most: by then every refusal has been confirmed or refuted.
"""

import os
import time

from expectations import wait_for

GRANTS = 600
WAVE = 180
AFTER = float(os.environ.get("AFTER_SECONDS", "0"))


def scenario(place):
    sandbox = place.sandbox
    sandbox.settings(lifetime=60)
    place.generate_keys()
    place.bring_in(sandbox.create(GRANTS))
    worker = place.start().wait_started()
    wait_for(lambda: all(row["is_proven"] for row in place.rows()), 90, "every grant was refreshed once")

    sandbox.settings(wave_rate=0.66)
    began = time.monotonic()
    wait_for(lambda: time.monotonic() > began + WAVE, WAVE + 5, "the wave's three minutes", pause=1)
    sandbox.settings(wave_rate=0)
    over = time.monotonic()
    refused = sandbox.stats()["by_answer"]["invalid_grant"]
    assert refused > GRANTS / 2, "the refusals form a wave"
    assert refused < GRANTS * 1.2, "held grants are not asked again and again"
    wait_for(lambda: time.monotonic() > over + AFTER, AFTER + 5, "the time after the wave", pause=1)
    wait_for(lambda: place.states() == {"active": GRANTS}, 360, "all are active again", pause=1)
    worker.stop()
    called_back = len(worker.events("state", **{"from": "disconnected", "to": "retrying"}))
    return f"{refused} refusals, {called_back} recalled, all active {time.monotonic() - over:.0f} s after the wave"
