"""Power cuts on SQLite: half of them after syncs that failed."""

import shutil
import time

from disk import Disk, chance_for
from trial import ORDERLY, Template, Trial
from verification import check_integrity, verify

GRANTS = 120
LONGEST = 12  # seconds until the cut, if no rule has caused it before


def plan(chance, fails):
    """The rules of one trial: the syncs that fail, and the call at which the power is cut."""
    # The start makes a dozen syncs; about 34 writes and 2 requests come between two of them.
    first = chance.randrange(1, 90) if fails else 0
    rules = []
    if fails:
        rules.append(chance.choice([
            f"fail:sync/wal:n={first}", f"fail:sync/wal:n={first}", "fail:sync/wal:p=0.1", "fail:sync/*:p=0.1",
            f"fail:sync/db:p=0.5;fail:sync/wal:n={first}",
        ]))
    rules.append(chance.choice([
        f"cut:sync/wal:n={first + chance.randrange(20, 120)}",
        f"cut:sync/wal:n={first + chance.randrange(1, 20)}",
        f"cut:write/wal:n={34 * first + chance.randrange(400, 4000)}",
        f"cut:write/db:n={chance.randrange(1, 300)}",
        f"cut:send/net:n={2 * first + chance.randrange(150, 900)}",
    ]))
    return rules


def run_beside(one, worker, rules):
    """Runs `--run-once` repeatedly in parallel with the daemon, as cron would, until the cut; returns the daemon's exit
    code."""
    end = worker.began + LONGEST
    while (code := worker.wait(0)) is None and time.time() < end:
        once = one.start("--run-once", rules=rules, journal=True)
        # A process that is elsewhere at the cut stops at its next call.
        while once.wait(0.05) is None and worker.wait(0) is None and time.time() < end:
            pass
        if worker.wait(0) is not None or time.time() >= end:
            break
    return code if code is not None else worker.wait(0)


def trial(part, seed, index, base, template):
    fails = index % 2 == 1
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        rules = plan(one.chance, fails)
        one.control.set(one.control.ON, 1)
        disk = Disk(one.disk, chance_for("disk", part, seed, index))
        worker = one.start(rules=rules, journal=True)
        code = run_beside(one, worker, rules) if index % 4 >= 2 else worker.wait(LONGEST)
        if code is None:
            # The cut is made from outside; a process in the middle of a call ends it.
            one.control.set(one.control.POWER_OFF, 1)
        else:
            assert code == -9 or code in ORDERLY, f"the worker ends in order; it wrote: {worker.output()}"
        for process in one.workers:
            process.end()
        failed = one.control.hits() - one.control.get(one.control.POWER_OFF) if fails else 0
        disk.replay(one.journal)
        fallen = disk.cut()
        one.note(f"rules {';'.join(rules)}; {failed} syncs failed; records {disk.counts}; {fallen}")
        one.new_boot()
        one.control.set(one.control.POWER_OFF, 0)
        one.control.set(one.control.ON, 0)
        shutil.copytree(one.disk, one.folder / "after-cut")
        counts = verify(one)
        # The worker starts again and refreshes what is due; it must keep every token that still works.
        one.run("--run-once", "--metrics-log", one.folder / "metrics-9.jsonl", expect=(0, 75), seconds=320)
        counts = verify(one)
        check_integrity(one.database)
        return {
            **counts,
            "failed syncs": failed,
            "cuts after a failed sync": int(failed > 0),
            "power cuts": 1,
        }, one.notes


def template(base):
    return Template(base, GRANTS)
