"""Two names of one SQLite file, side files deleted in use, and an older backup beside a spill file."""

import errno
import shutil
import subprocess

from google import number_of
from trial import Template, Trial, pause
from verification import check_integrity, verify

GRANTS = 60
# A new file of leases lets nothing be claimed for this time, in seconds.
CLAIM_PAUSE = 30
LEASES = ("leases", "leases-shm", "leases-wal", "leases garbled")
# A short run has the first three.
KINDS = ("hard link", "leases", "older backup", "mounted file", *LEASES[1:], "-shm", "-wal")


def template(base):
    return Template(base, GRANTS)


def trial(part, seed, index, base, template):
    kind = KINDS[index % len(KINDS)]
    # A slow server has many requests in flight when the disk fails.
    latency = 0.8 if kind == "older backup" else 0.03
    with Trial(part, seed, index, base, template, lifetime=2, latency=latency) as one:
        one.note(kind)
        worker = one.start()
        worker.wait_for(lambda: worker.text().count('"refreshed"') > GRANTS, 60, "grants are refreshed")
        if kind == "older backup":
            restore(one, worker)
            return {"restored": 1}, one.notes
        if kind in LEASES:
            lose_leases(one, kind)
        elif kind in ("hard link", "mounted file"):
            second_name(one, kind)
        else:
            lose_side_file(one, worker, kind)
        worker = one.workers[-1]
        settle(one, worker)
        for each in one.workers:
            each.stop()
        counts = verify(one)
        check_integrity(one.database)
        return counts, one.notes


def settle(one, worker):
    """Waits until every grant was refreshed once more."""
    before = {name: account.issued for name, account in one.google.accounts.items()}
    worker.wait_for(
        lambda: all(account.issued > before[name] for name, account in one.google.accounts.items()),
        CLAIM_PAUSE + 30, "every grant is refreshed again",
    )


def second_name(one, kind):
    """A worker that finds the file under a second name refuses to start."""
    folder = one.folder / "second"
    folder.mkdir()
    (first, second) = (one.database, folder / "grants.sqlite")
    if kind == "hard link":
        second.hardlink_to(first)
    else:
        second.touch()
        mounted = subprocess.run(["mount", "--bind", first, second], capture_output=True, text=True)
        if mounted.returncode != 0:
            one.note(f"no file can be mounted here: {mounted.stderr.strip()}")
            return
    try:
        one.database = second
        worker = one.start()
        assert worker.wait(30) == 78, f"the second name is refused; the worker wrote: {worker.output()}"
    finally:
        one.database = first
        if kind != "hard link":
            subprocess.run(["umount", second], check=True)
        second.unlink()
        one.workers.remove(worker)


def lose_leases(one, kind):
    """The workers of a lost file of leases make a new one, and continue without a restart."""
    file = next(path for path in one.disk.iterdir() if "-leases-" in path.name and path.name.count("-") == 6)
    if kind == "leases garbled":
        file.write_bytes(b"\7" * file.stat().st_size)
    else:
        file.with_name(file.name + kind.removeprefix("leases")).unlink()
    one.run("status", expect=(0, 1, 3, 4), seconds=CLAIM_PAUSE)
    one.start()
    first = one.workers[0]
    pause(2)
    assert first.wait(0) is None, f"the worker continues; it wrote: {first.output()}"


def lose_side_file(one, worker, kind):
    """Without the database's log or index, the worker stores nothing more, and names the file. Nothing is lost."""
    side = one.database.with_name(one.database.name + kind)
    side.unlink()
    code = worker.wait(60)
    assert code == 78 and str(side) in worker.output(), (
        f"the worker stops and names the file; it ended with {code} and wrote: {worker.output()}"
    )
    one.start()


def restore(one, worker):
    """Results that could not be stored are stored in a backup that is older than the database was."""
    backup = one.folder / "backup.sqlite"
    one.run("backup", backup)
    worker.stop()
    code = errno.ENOSPC
    rules = [f"fail:{kind}:p=1:{code}" for kind in ("write/db", "write/wal", "write/journal")]
    worker = one.start(rules=rules)
    # The tokens of the backup are replaced at least once.
    before = worker.text().count('"refreshed"')
    worker.wait_for(lambda: worker.text().count('"refreshed"') >= before + 2 * GRANTS, 60, "grants are refreshed")
    one.control.set(one.control.ON, 1)
    worker.wait_for(lambda: one.control.hits() > 5, 60, "writes have failed")
    assert worker.stop(45) == 74, f"results go to the spill file; the worker wrote: {worker.output()}"
    one.control.set(one.control.ON, 0)
    reported = {}
    for event in one.metrics():
        if event["event"] == "refresh" and event["rotated"]:
            user = one.users[event["grant"]]
            reported[user] = reported.get(user, 0) + 1
    spilled = {name for name, account in one.google.accounts.items() if account.issued > reported.get(name, 0)}
    assert spilled, "some results could not be stored"
    for side in ("-wal", "-shm"):
        one.database.with_name(one.database.name + side).unlink(missing_ok=True)
    shutil.copy(backup, one.database)
    stored = one.stored()
    lost = {name for name in spilled if number_of(stored[name]["refresh_token"]) < one.google.accounts[name].issued}
    assert not lost, f"all {len(spilled)} spilled tokens are stored in the backup; {len(lost)} are not"
    left = [path.name for path in one.disk.iterdir() if ".unsaved-" in path.name or ".set-aside-" in path.name]
    assert not left, f"the spill file is recovered; {left} are left"
    one.note(f"{len(spilled)} of {GRANTS} results were in the spill file")
