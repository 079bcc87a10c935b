"""kill -9 on SQLite at the n-th call of a kind: at each step of claim, send, commit and checkpoint."""

from trial import ORDERLY, Template, Trial
from verification import check_integrity, verify

GRANTS = 120
LIVES = 3  # kills in each trial


def template(base):
    return Template(base, GRANTS)


def point(chance):
    """A rule that kills, and `True` if the worker is stopped first, which makes a checkpoint."""
    kind, most, stops = chance.choice([
        ("write/wal", 3000, False),  # claims and results
        ("write/wal", 400, False),  # the start
        ("sync/wal", 90, False),
        ("send/net", 400, False),
        ("receive/net", 500, False),
        ("write/db", 200, True),  # a checkpoint
        ("sync/db", 3, True),
        ("sync/wal", 120, True),
        ("truncate/wal", 2, True),
        ("unlink/*", 2, True),
        ("open/*", 12, False),
        ("read/db", 120, False),
    ])
    return f"kill:{kind}:n={chance.randrange(1, most + 1)}", stops


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        one.control.set(one.control.ON, 1)
        kills = 0
        for _ in range(LIVES):
            rule, stops = point(one.chance)
            one.note(rule)
            kills += life(one, rule, stops)
        one.control.set(one.control.ON, 0)
        verify(one)
        # The leases of the killed workers must not delay the last run.
        one.new_boot()
        one.run("--run-once", "--metrics-log", one.folder / "metrics-9.jsonl", expect=(0, 75), seconds=320)
        counts = verify(one)
        check_integrity(one.database)
        return {**counts, "kills": kills}, one.notes


def life(one, rule, stops):
    """Runs one worker until it is killed; returns 1."""
    for word in range(one.control.FIRST_RULE, one.control.WORDS):
        one.control.set(word, 0)
    worker = one.start(rules=[rule])
    code = worker.wait(2 if stops else 6)
    if code is None:
        # It has not reached that call yet, but may do so while it stops.
        code = worker.stop() if stops else None
    if code is None:
        worker.end()
        return 1
    if code == -9:
        return 1
    assert code in ORDERLY, f"the worker ends in order; it wrote: {worker.output()}"
    return 0
