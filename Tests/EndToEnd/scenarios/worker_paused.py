"""One of two workers is stopped in the middle of a transaction, with answers in its memory, for longer than its leases.

The open transaction does not block the other worker, which takes over the grants. When the first one wakes, it does not
overwrite their results.
"""

import signal

from expectations import wait_for
from faults import LEASE, PATIENCE, HeldLock, Rounds, named, wait_acquainted, worker_name

STORE = "postgres"

GRANTS = 40
SCAN = 15


def scenario(place):
    rounds = Rounds(place, GRANTS)
    url = place.database
    workers = []
    for name in ("sleeper", "other"):
        place.database = named(url, name)
        workers.append(place.start().wait_started())
    place.database = url
    sleeper, other = workers
    wait_acquainted(place, 2)

    rounds.begin(hold=True)
    rounds.wait_held()
    asleep = rounds.claimed_by(worker_name(sleeper))
    awake = rounds.claimed_by(worker_name(other))
    assert asleep and awake, "both workers claim grants"

    # The paused worker is stopped inside of its transaction: it holds the turn that every transaction takes.
    lock = HeldLock(place.server)
    rounds.release(asleep)
    lock.wait_for_waiter("sleeper")
    sleeper.signal(signal.SIGSTOP)
    lock.release()
    place.server.wait_for_session("sleeper", "state = 'idle in transaction'", "is in the middle of a transaction")
    rounds.release(awake)
    wait_for(
        lambda: not rounds.claimed_by(worker_name(other)), 2 * PATIENCE + SCAN, "the other's answers are stored",
    )
    assert rounds.claimed_by(worker_name(sleeper)) == asleep, "the leases hold until their end"
    rounds.explain(asleep)
    rounds.wait_stored(LEASE + SCAN, "the other took over what the sleeper had")
    before = stored(place)

    sleeper.signal(signal.SIGCONT)
    wait_for(
        lambda: len(late(sleeper)) == len(asleep), 30, "the sleeper has found each of its answers to be late",
    )
    assert stored(place) == before, "the sleeper overwrites no result"
    # The worker continues as before, once both workers know of each other again.
    wait_acquainted(place, 2)
    rounds.begin()
    rounds.wait_stored(20, "the next time goes as ever")
    for worker in workers:
        assert worker.events("refresh", outcome="refreshed"), "both workers refresh"
        worker.stop()
    return f"{len(asleep)} late answers; {rounds.judge()}"


def late(worker):
    return worker.events("refresh", outcome="void")


def stored(place):
    """The columns that must not be overwritten, by user."""
    kept = ("refresh_token", "access_token", "access_expires_at", "generation", "state", "reason", "due_at")
    return {row["user_id"]: [row[column] for column in kept] for row in place.rows()}
