"""I/O errors on SQLite: reads, writes, syncs, cuts, opens and mappings fail by chance while the worker refreshes."""

import errno

from trial import Template, Trial
from verification import check_integrity, verify

GRANTS = 120
SPAN = 10  # seconds under faults
# The exit codes after which systemd starts the worker again.
PASSING = {74, 75}
# After a failed commit the worker pauses, so that most trials wait most of the time.
JOBS_FACTOR = 4
SETTLING = 90  # seconds that the worker may take to be as before once the faults have ended


def template(base):
    return Template(base, GRANTS)


def plan(chance, index):
    """The rules of one trial: several kinds of calls at several rates, and the errors that a broken or full disk
    gives."""
    if index % 3 == 0:
        # Only reads: the worker does not pause after a failed read, so that hundreds fail in one trial.
        return [f"fail:read/wal:p={chance.choice([0.05, 0.15, 0.3])}", f"fail:read/db:p={chance.choice([0.01, 0.1])}"]
    rate = chance.choice([0.005, 0.02, 0.1, 0.3])
    codes = [errno.EIO, errno.EIO, errno.ENOSPC, errno.EDQUOT]
    return chance.sample([
        f"fail:write/wal:p={rate}:{chance.choice(codes)}",
        f"short:write/wal:p={rate / 2}:{chance.choice(codes)}",
        f"fail:write/db:p={rate}:{chance.choice(codes)}",
        f"fail:read/wal:p={rate / 2}",
        f"fail:read/db:p={rate / 2}",
        f"fail:sync/wal:p={rate}",
        f"fail:sync/db:p={rate}",
        f"fail:truncate/*:p={rate}",
        f"fail:open/*:p={rate}:{chance.choice([errno.EMFILE, errno.ENFILE, errno.EIO])}",
        f"fail:mmap/shm:p={rate}:{chance.choice([errno.ENOMEM, errno.EIO])}",
        f"fail:truncate/shm:p={rate}:{errno.ENOSPC}",
        f"fail:unlink/*:p={rate}",
    ], chance.randrange(2, 6))


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        rules = plan(one.chance, index)
        one.note(";".join(rules))
        at_start = one.chance.random() < 0.3
        one.control.set(one.control.ON, int(at_start))
        worker = one.start(rules=rules)
        exits = 0
        deadline = worker.began + SPAN
        if not at_start:
            worker.wait_for(lambda: '"started"' in worker.text(), 30, "the worker starts without faults")
            one.control.set(one.control.ON, 1)
        while (left := deadline - worker.began) > 0:
            code = worker.wait(left)
            if code is None:
                break
            # systemd restarts it after a second.
            exits += 1
            accept(worker, code)
            deadline -= 1
            worker = again(one, rules, deadline)
            if exits > 6:
                break
        one.control.set(one.control.ON, 0)
        code = worker.wait(0)
        if code is not None:
            accept(worker, code)
            exits += 1
            worker = one.start()
        exits += recover(one, worker)
        counts = verify(one, complete=exits == 0)
        check_integrity(one.database)
        return {**counts, "faults": one.control.hits(), "orderly exits": exits}, one.notes


def again(one, rules, deadline):
    worker = one.start(rules=rules)
    worker.began = min(worker.began, deadline)
    return worker


def accept(worker, code):
    """After temporary faults, an exit must let systemd restart the worker, and must not report the intact file as
    damaged."""
    assert code in PASSING, f"the exit code lets systemd restart the worker; it wrote: {worker.output()}"
    assert worker.output(), "the worker gives the reason of its exit"
    assert "is damaged" not in worker.output(), "the intact file is not reported as damaged"


def recover(one, worker):
    """Waits until the worker works as before, and stops it; returns the number of restarts that this took."""
    exits = 0
    before = one.google.refusals

    def has_settled():
        done = sum(account.issued for account in one.google.accounts.values())
        return done >= target and one.google.refusals >= before

    target = sum(account.issued for account in one.google.accounts.values()) + GRANTS
    while not worker.wait_for(has_settled, SETTLING, "the worker refreshes again after the faults have ended"):
        accept(worker, worker.process.returncode)
        exits += 1
        assert exits <= 3, f"the worker starts after the faults have ended; it wrote: {worker.output()}"
        worker = one.start()
    assert worker.stop() == 0, f"the worker stops in order after the faults have ended; it wrote: {worker.output()}"
    return exits
