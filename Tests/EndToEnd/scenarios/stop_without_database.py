"""SIGTERM while PostgreSQL is away: the worker ends within its unit's limit, and the answers are stored later."""

import time

from faults import Rounds
from harness import check, wait_for

STORE = "postgres"

GRANTS = 40
# The time limit of a stop in seconds: TimeoutStopSec of the unit.
STOP_LIMIT = 40


def scenario(place):
    state = place.folder / "state"
    state.mkdir(mode=0o700)
    place.environment["STATE_DIRECTORY"] = str(state)
    rounds = Rounds(place, GRANTS)
    worker = place.start().wait_started()
    rounds.begin(hold=True)
    rounds.wait_held()
    place.server.stop("immediate")
    rounds.release(rounds.emails)
    wait_for(lambda: worker.events("alarm", kind="store_failing"), 30, "the database is away")
    began = time.monotonic()
    worker.stop(expect=74)
    took = time.monotonic() - began
    check(took < STOP_LIMIT, f"the stop took {took:.0f} s")
    spills = list(state.glob("refresh-worker.unsaved-*"))
    check(len(spills) == 1, f"one spill file, not {spills}: {worker.errors.read_text()[-600:]}")
    check(str(spills[0]) in worker.errors.read_text(), "the worker says where it is")
    place.server.start()
    again = place.start().wait_started()
    check("are stored" in again.errors.read_text(), again.errors.read_text())
    check(not list(state.glob("refresh-worker.unsaved-*")), "the file goes when its results are stored")
    rounds.wait_stored(60, "nothing is due or claimed any more")
    again.stop()
    return f"the stop took {took:.0f} s; {rounds.judge() or 'nothing was lost'}"
