"""A full disk: at SIGTERM the spill file keeps rotated tokens for the next start. A start waits for space."""

import contextlib
import errno
import json
import os
import sqlite3
import subprocess
import threading

from expectations import wait_for
from harness import Skipped

GRANTS = 60


def scenario(fixture):
    disk = fixture.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        raise Skipped(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        fixture.database = disk / "grants.sqlite"
        return fill_disk(fixture, disk)
    finally:
        for worker in fixture.workers:
            worker.kill()
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill_disk(fixture, disk):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600, rotation=True, strict_rotation=True)
    fixture.generate_keys()
    grants = [sandbox.create_expired(f"user{number}@example.com") for number in range(GRANTS)]
    # A worker sends few requests until the first of them has succeeded.
    fixture.import_grants(grants[:1])
    worker = fixture.start("--stop-deadline", "8").wait_started()
    wait_for(lambda: worker.events("refresh", outcome="refreshed"), 60, "the first grant is refreshed")
    for grant in grants:
        sandbox.change(grant, hold=True)
    fixture.import_grants(grants[1:])
    fixture.set_due(0)
    sandbox.call(f"/control/wait?holding={GRANTS}")
    wait_for(lambda: (disk / "grants.sqlite.reserve").exists(), 60, "the reserve is made")
    # Without the half of the reserve for commits, only the spill file remains for the answers.
    os.truncate(disk / "grants.sqlite.reserve", 2 << 20)
    with Filler(disk) as filler:
        with reader(fixture.database):
            for grant in grants:
                sandbox.call("/control/release", {"email": grant["email"]})
            wait_for(lambda: worker.events("alarm", kind="store_failing"), 60, "the disk is full")
            reads(fixture)
            worker.stop(expect=74)
        spills = list(disk.glob("grants.sqlite.unsaved-*"))
        assert len(spills) == 1, (
            f"the results go to one spill file; the worker wrote: {worker.errors.read_text()[-600:]}"
        )
        assert spills[0].stat().st_mode & 0o777 == 0o600, "only the owner can read the spill file"
        content = spills[0].read_bytes()
        for grant in sandbox.stats(grants=True)["grants"]:
            assert grant["current_refresh_token"].encode() not in content, "each token in the spill file is sealed"
        # The first process that opens the database makes SQLite's indexes again, in the space of the former ones. The
        # disk stays full, but no other writer takes that space in between.
        filler.stop()
        reads(fixture)
    damaged(fixture, disk)
    fixture.run("status")
    assert not list(disk.glob("grants.sqlite.unsaved-*")), "a command that opens the database recovers the file"
    worker = fixture.start().wait_started()
    for grant in grants:
        # Strict rotation: only the rotated token still works.
        fixture.run("token", grant["email"], "--min-ttl", "7200")
    assert fixture.states() == {"active": GRANTS}, "every grant is active"
    assert sandbox.stats()["by_answer"].get("invalid_grant", 0) == 0, "no spent refresh token is sent"
    worker.stop()
    waits(fixture, disk)
    return f"{GRANTS} rotated tokens were kept in a spill file of {len(content)} bytes"


@contextlib.contextmanager
def reader(database):
    """Keeps a snapshot open, so that the log cannot be used again from its beginning, which would make room."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM grants").fetchone()
    try:
        yield
    finally:
        connection.close()


def reads(fixture):
    """The commands that an operator needs now, with the worker and without it."""
    status = json.loads(fixture.run("status", "--json").stdout)
    assert status["grants"]["total"] == GRANTS, "status reads the database on a full disk"
    assert "disk_nearly_full" in [concern["kind"] for concern in status["concerns"]], "status sees the full disk"
    assert len(fixture.run("grants", "list", "--json").stdout.splitlines()) == GRANTS, "so does grants list"
    assert fixture.run("keys", "list").stdout, "and so does keys list"


def waits(fixture, disk):
    """A worker that starts on a full disk waits until there is space."""
    with Filler(disk) as filler:
        # There is space for the indexes of SQLite's two logs, but not for the logs.
        filler.stop()
        os.truncate(filler.path, filler.path.stat().st_size - 65_536)
        worker = fixture.start()
        wait_for(lambda: "waiting for the database" in worker.errors.read_text(), 30, "the worker waits for space")
    worker.wait_started().stop()


def damaged(fixture, disk):
    """A file that is not a spill file is set aside, and does not prevent the recovery of others."""
    unexpected = disk / "grants.sqlite.unsaved-1-unexpected"
    unexpected.write_bytes(b"refresh-worker results 3 unknown\n\0\0\0\x40 this is not a sealed result")
    output = fixture.run("status").stderr
    assert "set aside" in output, "the worker says that it set the unexpected file aside"
    assert not unexpected.exists() and (disk / "grants.sqlite.set-aside-1-unexpected").exists(), (
        f"the unexpected file has its new name; the folder holds {list(disk.iterdir())}"
    )


class Filler(threading.Thread):
    """Fills a folder's file system, and any space that becomes free in it."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.file = os.open(folder / "filler", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self.path = folder / "filler"
        self.ended = threading.Event()

    def fill(self):
        with contextlib.suppress(OSError):
            while True:
                os.write(self.file, b"x" * 4096)

    def run(self):
        while not self.ended.wait(0.001):
            self.fill()

    def __enter__(self):
        try:
            while True:
                os.write(self.file, b"x" * 65536)
        except OSError as error:
            assert error.errno == errno.ENOSPC, "the disk is full"
        self.fill()
        self.start()
        return self

    def stop(self):
        self.ended.set()
        self.join()

    def __exit__(self, *_):
        self.stop()
        os.close(self.file)
        self.path.unlink()
