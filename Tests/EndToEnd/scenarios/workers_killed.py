"""Three workers on one database, killed one after the other in mid-work: each one's grants are taken over when its
leases end."""

import random
import signal

from expectations import wait_for
from faults import DATABASE_NOW, LEASE, Rounds, wait_until_all_reported, worker_name

STORE = "postgres"

GRANTS = 60
# The delay after the end of a lease within which a scan finds the grant, on a busy machine.
SCAN = 15


def scenario(fixture):
    chance = random.Random(4)
    rounds = Rounds(fixture, GRANTS)
    workers = [fixture.start().wait_started() for _ in range(3)]
    names = [worker_name(worker) for worker in workers]
    wait_until_all_reported(fixture, 3)

    rounds.begin(hold=True)
    rounds.wait_held()
    held = [rounds.claimed_by(name) for name in names]
    assert all(held), f"each worker claims grants: {[len(grants) for grants in held]}"
    # The first worker dies with unread answers: Google has rotated these tokens, and no worker knows the new ones.
    workers[0].signal(signal.SIGSTOP)
    rounds.release(held[0])
    leases = dies(fixture, rounds, workers[0], names[0])
    # The second worker dies while it waits for its answers.
    leases |= dies(fixture, rounds, workers[1], names[1])
    # The third worker dies while it stores: some of its answers are stored, the others are only in its memory or
    # sockets.
    some = chance.sample(sorted(held[2]), len(held[2]) // 2)
    rounds.release(some)
    wait_for(lambda: rounds.claimed_by(names[2]) != held[2], 60, "the third has begun to store", pause=0)
    leases |= dies(fixture, rounds, workers[2], names[2])
    # The requests that are still on hold belong to dead workers.
    rounds.sandbox.call("/control/release", {})

    heir = fixture.start().wait_started()
    rounds.wait_stored(LEASE + SCAN, "all claims are taken over")
    for row in fixture.rows():
        if row["user_id"] in leases:
            late = (row["last_success_at"] - leases[row["user_id"]]) / 1000
            assert late >= 0, "a worker's lease holds until its end"
            assert late <= SCAN, "a grant is taken over within a scan of its lease's end"
    rounds.begin()
    rounds.wait_stored(20, "the next round works as usual")
    heir.stop()
    return f"{len(leases)} grants taken over; {rounds.verify()}"


def dies(fixture, rounds, worker, name):
    """Kills a worker; returns the end of each of its leases."""
    worker.kill()
    rows = [row for row in fixture.rows() if row["lease_owner"] == name]
    now = int(fixture.server.execute(DATABASE_NOW))
    leases = {row["user_id"]: row["lease_until"] for row in rows}
    assert all(until <= now + LEASE * 1000 for until in leases.values()), f"no lease is longer than {LEASE} s"
    rounds.explain(leases)
    return leases
