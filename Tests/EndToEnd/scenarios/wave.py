"""`invalid_grant` for two thirds of all grants, over after three minutes: a quarter of an hour later nobody is disconnected.

The worker's clock runs ten times as fast (libfaketime), so that the twenty minutes take two.
"""

import shutil

from harness import check, wait_for

GRANTS = 600
SPEED = 10


def scenario(place):
    check(shutil.which("faketime"), "faketime is missing: install it")
    sandbox = place.sandbox
    sandbox.settings(lifetime=300)
    place.generate_keys()
    place.bring_in(sandbox.create(GRANTS))
    worker = place.start(prefix=["faketime", "-f", f"+0 x{SPEED}"]).wait_started()
    wait_for(lambda: all(row["is_proven"] for row in place.rows()), 90, "every grant was refreshed once")

    def now():
        return place.rows("SELECT max(last_attempt_at) AS t FROM grants")[0]["t"] / 1000

    sandbox.settings(wave_rate=0.66)
    began = now()
    wait_for(lambda: now() > began + 180, 60, "three minutes of the worker's time")
    sandbox.settings(wave_rate=0)
    over = now()
    refused = sandbox.stats()["by_answer"]["invalid_grant"]
    check(refused > GRANTS / 4, f"only {refused} were refused: this was no wave")
    wait_for(lambda: now() > over + 900, 150, "a quarter of an hour of the worker's time")
    wait_for(lambda: place.states() == {"active": GRANTS}, 30, "all are active again")
    worker.stop()
    called_back = len(worker.events("state", **{"from": "disconnected", "to": "retrying"}))
    return f"{refused} refusals, {called_back} called back"
