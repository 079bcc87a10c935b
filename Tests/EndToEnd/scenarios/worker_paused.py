"""One of two workers is stopped in the middle of a transaction, with answers in its memory, for longer than its leases.

The open transaction does not block the other worker, which takes over the grants. When the paused worker continues, it
does not overwrite their results.
"""

import signal

from expectations import wait_for
from faults import LEASE, STORE_TIMEOUT, HeldLock, Rounds, named, wait_until_all_reported, worker_name

STORE = "postgres"

GRANTS = 40
SCAN = 15


def scenario(fixture):
    rounds = Rounds(fixture, GRANTS)
    url = fixture.database
    workers = []
    for name in ("paused", "other"):
        fixture.database = named(url, name)
        workers.append(fixture.start().wait_started())
    fixture.database = url
    paused, other = workers
    wait_until_all_reported(fixture, 2)

    rounds.begin(hold=True)
    rounds.wait_held()
    of_paused = rounds.claimed_by(worker_name(paused))
    of_other = rounds.claimed_by(worker_name(other))
    assert of_paused and of_other, "both workers claim grants"

    # The paused worker is stopped inside its transaction, while it holds the lock that every transaction takes.
    lock = HeldLock(fixture.server)
    rounds.release(of_paused)
    lock.wait_for_waiter("paused")
    paused.signal(signal.SIGSTOP)
    lock.release()
    fixture.server.wait_for_session("paused", "state = 'idle in transaction'", "is in the middle of a transaction")
    rounds.release(of_other)
    wait_for(
        lambda: not rounds.claimed_by(worker_name(other)), 2 * STORE_TIMEOUT + SCAN,
        "the other worker's answers are stored",
    )
    assert rounds.claimed_by(worker_name(paused)) == of_paused, "the leases hold until their end"
    rounds.explain(of_paused)
    rounds.wait_stored(LEASE + SCAN, "the other worker has taken over the paused worker's grants")
    before = stored(fixture)

    paused.signal(signal.SIGCONT)
    wait_for(
        lambda: len(late(paused)) == len(of_paused), 60, "the paused worker reports that each of its answers is late",
    )
    assert stored(fixture) == before, "the paused worker overwrites no result"
    # The worker refreshes its share again once each worker has read the other's report.
    wait_until_all_reported(fixture, 2)
    rounds.begin()
    rounds.wait_stored(20, "the next round is stored")
    for worker in workers:
        assert worker.events("refresh", outcome="refreshed"), "both workers refresh"
        worker.stop()
    return f"{len(of_paused)} late answers; {rounds.verify()}"


def late(worker):
    return worker.events("refresh", outcome="void")


def stored(fixture):
    """The columns that must not be overwritten, by user."""
    columns = ("refresh_token", "access_token", "access_expires_at", "generation", "state", "reason", "due_at")
    return {row["user_id"]: [row[column] for column in columns] for row in fixture.rows()}
