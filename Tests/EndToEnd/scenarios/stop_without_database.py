"""SIGTERM while PostgreSQL is away: the worker ends within its unit's limit, and the answers are stored later."""

import time

from expectations import wait_for
from faults import Rounds

STORE = "postgres"

GRANTS = 40
# The time limit of a stop in seconds: TimeoutStopSec of the unit.
STOP_LIMIT = 40


def scenario(fixture):
    state = fixture.folder / "state"
    state.mkdir(mode=0o700)
    fixture.environment["STATE_DIRECTORY"] = str(state)
    rounds = Rounds(fixture, GRANTS)
    worker = fixture.start().wait_started()
    rounds.begin(hold=True)
    rounds.wait_held()
    fixture.server.stop("immediate")
    rounds.release(rounds.emails)
    wait_for(lambda: worker.events("alarm", kind="store_failing"), 60, "the database is away")
    began = time.monotonic()
    worker.stop(expect=74)
    took = time.monotonic() - began
    assert took < STOP_LIMIT, "the stop takes less than its limit"
    spills = list(state.glob("refresh-worker.unsaved-*"))
    assert len(spills) == 1, f"the results go to one spill file; the worker wrote: {worker.errors.read_text()[-600:]}"
    assert str(spills[0]) in worker.errors.read_text(), "the worker names the spill file"
    fixture.server.start()
    again = fixture.start().wait_started()
    assert "are stored" in again.errors.read_text(), "the next worker says that the results are stored"
    assert not list(state.glob("refresh-worker.unsaved-*")), "the spill file is removed once its results are stored"
    rounds.wait_stored(60, "nothing is due or claimed any more")
    again.stop()
    return f"the stop took {took:.0f} s; {rounds.verify() or 'nothing was lost'}"
