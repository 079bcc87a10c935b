"""A full disk and SIGTERM: results that could not be stored must be there after the next start.

In half of the trials the power fails once the worker has ended. The recovery is killed on its way.
"""

import errno

from disk import Disk, chance_for
from trial import ORDERLY, Template, Trial
from verification import check_integrity, verify

GRANTS = 120


def template(base):
    return Template(base, GRANTS)


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        code = one.chance.choice([errno.ENOSPC, errno.ENOSPC, errno.EDQUOT, errno.EIO])
        rules = [f"fail:{kind}:p=1:{code}" for kind in ("write/db", "write/wal", "write/journal")]
        is_cut = one.chance.random() < 0.5
        disk = Disk(one.disk, chance_for("disk", part, seed, index))
        worker = one.start(rules=rules, journal=is_cut)
        # At some point in the first or second round of refreshes.
        enough = one.chance.randrange(GRANTS // 2, 2 * GRANTS)
        worker.wait_for(lambda: worker.text().count('"refreshed"') > enough, 60, "grants are refreshed")
        one.control.set(one.control.ON, 1)
        # Stopped at once, or after some commits have failed.
        failures = one.chance.choice([0, 0, 1, 2, 5])
        worker.wait_for(lambda: one.control.hits() >= failures, 60, f"{failures} writes have failed")
        code = worker.stop(45)
        assert code in ORDERLY, f"the worker stops in order; it wrote: {worker.output()}"
        one.control.set(one.control.ON, 0)
        if is_cut:
            disk.replay(one.journal)
            one.note("then the power fails: " + disk.cut())
            one.new_boot()
        spilled = [path.name for path in one.disk.iterdir() if ".unsaved-" in path.name]
        one.note(f"ended with {code}; {spilled or 'nothing spilled'}")
        kills = 0
        for _ in range(one.chance.randrange(3) if spilled else 0):
            kills += kill_recovery(one)
        verify(one, complete=True)
        one.new_boot()
        one.run("--run-once", "--metrics-log", one.folder / "metrics-9.jsonl", expect=(0, 75), seconds=320)
        counts = verify(one, complete=True)
        check_integrity(one.database)
        return {**counts, "spill files": len(spilled), "kills of the recovery": kills,
                "power cuts after it": int(is_cut)}, one.notes


def kill_recovery(one):
    """Kills a command that finds the spill file; returns 1 if it was killed."""
    kind, most = one.chance.choice(
        [
            ("write/wal", 40),
            ("sync/*", 3),
            ("unlink/spill", 1),
            ("open/spill", 2),
            ("read/spill", 3),
            ("sync/folder", 1),
        ]
    )
    for word in range(one.control.FIRST_RULE, one.control.WORDS):
        one.control.set(word, 0)
    one.control.set(one.control.ON, 1)
    rule = f"kill:{kind}:n={one.chance.randrange(1, most + 1)}"
    result = one.run("grants", "list", rules=[rule], expect=None)
    one.control.set(one.control.ON, 0)
    one.note(f"recovery under {rule}: {result.returncode}")
    assert result.returncode in (0, -9), (
        f"the recovery under {rule} succeeds or is killed; it wrote: {result.stderr[-400:]}"
    )
    return int(result.returncode == -9)
