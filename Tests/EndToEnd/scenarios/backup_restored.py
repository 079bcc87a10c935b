"""A machine is lost and restored from an archive of `backup`, and the worker goes on refreshing."""

import json
import os
import pathlib
import shutil
import stat
import subprocess

from expectations import wait_for
from harness import CLIENT, WORKER

STORE = "sqlite"
JWT_SECRET = "the-secret-of-the-tokens-of-the-app"


def scenario(fixture):
    machine, archives = fixture.folder / "machine", fixture.folder / "archives"
    etc, state = machine / "etc", machine / "state"
    for folder in (archives, etc, state):
        folder.mkdir(parents=True)
    configure(fixture, etc, state)
    # Refreshed every few seconds.
    fixture.sandbox.settings(lifetime=10)
    grants = [fixture.sandbox.create_expired(f"user{number}@example.com") for number in range(4)]
    fixture.database, fixture.keys = state / "grants.sqlite", etc / "keys"
    fixture.generate_keys()
    fixture.import_grants(grants)
    worker = start(fixture, etc)
    wait_for(lambda: refreshed(fixture) >= 4, 60, "every grant is refreshed")

    whole, open_files = archives / "whole.tar", keeps_two(fixture, etc, archives)
    made = json.loads(run(etc, "backup", "--archive", "--with-secrets", "--json", whole).stdout)
    assert made["other_files"] == [] and str(etc / "keys") in made["files"], "a whole archive needs no other file"
    assert stat.S_IMODE(whole.stat().st_mode) == 0o600, "only its owner can read an archive"
    key = (etc / "keys").read_text().split()[-1].encode()
    assert key in whole.read_bytes(), "the whole archive has the key ring"
    content = open_files.read_bytes()
    assert key not in content and JWT_SECRET.encode() not in content, "the nightly archive has no secret"
    assert b"REFRESH_WORKER_DATABASE" in content and b"SQLite format 3" in content, "it has all the rest"
    sealed_beside_credentials(fixture, etc, archives, key)
    without_hard_links(etc, archives)
    before = modes(machine)
    running(fixture, etc, whole)
    copy = shutil.copy(etc / "keys", fixture.folder / "copy-of-keys")

    worker.kill()
    worker.wait(timeout=60)
    lose(machine, etc, state)
    restore(etc, whole)
    after = modes(machine)
    for path in ("etc/keys", "etc/jwt", "etc/worker.conf", "state/grants.sqlite"):
        assert after[path] == before[path], f"{path} has the same mode and owner"
    continues(fixture, etc)

    lose(machine, etc, state)
    restore(etc, open_files, missing=[etc / "keys", etc / "jwt"])
    missing = run(etc, "token", "user0@example.com", expect=78).stderr
    assert str(etc / "keys") in missing, "the error names the key ring, which the nightly archive lacks"
    shutil.copy(copy, etc / "keys")
    (etc / "jwt").write_text(JWT_SECRET)
    (etc / "jwt").chmod(0o600)
    continues(fixture, etc)
    return f"{whole.stat().st_size // 1024} KiB restored twice"


def configure(fixture, etc, state):
    url = fixture.sandbox.url
    settings = {
        "DATABASE": state / "grants.sqlite", "KEY_FILE": etc / "keys", "CLIENT_ID": CLIENT,
        "JWT_SECRET_FILE": etc / "jwt", "METRICS_LOG": fixture.folder / "metrics.jsonl",
        "TOKEN_ENDPOINT": url + "/token", "USERINFO_ENDPOINT": url + "/v1/userinfo",
        "TOKENINFO_ENDPOINT": url + "/tokeninfo", "REVOCATION_ENDPOINT": url + "/revoke",
    }
    (etc / "worker.conf").write_text("".join(f"REFRESH_WORKER_{name}={value}\n" for name, value in settings.items()))
    (etc / "jwt").write_text(JWT_SECRET)
    (etc / "jwt").chmod(0o600)


def run(etc, *words, expect=0, prefix=(), **variables):
    done = subprocess.run(
        [*prefix, WORKER, "--config", etc / "worker.conf", *words], capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], **variables},
    )
    assert done.returncode == expect, f"`{words[0]}` exits with {expect}; it wrote: {done.stderr}"
    return done


def start(fixture, etc):
    log = open(fixture.folder / "worker.log", "ab")
    return subprocess.Popen([WORKER, "--config", etc / "worker.conf"], stdout=log, stderr=log)


def refreshed(fixture):
    log = fixture.folder / "metrics.jsonl"
    return log.read_text().count('"outcome":"refreshed"') if log.exists() else 0


def keeps_two(fixture, etc, archives):
    """The command of the nightly timer; returns the archive that it made."""
    former = [archives / f"refresh-worker-202001{day:02}T030000Z.tar" for day in (1, 2, 3)]
    killed = archives / (former[0].name + ".partial-1f")
    for path in [*former, killed]:
        path.write_text("of an earlier night")
    made = json.loads(run(etc, "backup", "--archive", "--keep", "2", "--json", archives).stdout)
    assert sorted(made["removed"]) == sorted(path.name for path in [*former[:2], killed]), "older copies are removed"
    left = sorted(archives.iterdir())
    assert left == [former[2], pathlib.Path(made["file"])], "two copies are left"
    assert made["other_files"] == [str(etc / "keys"), str(etc / "jwt")], "it names the files that a restore also needs"
    return left[1]


def sealed_beside_credentials(fixture, etc, archives, key):
    """An archive lacks a key ring that systemd passes, and says so."""
    folder, archive = fixture.folder / "credentials", archives / "sealed.tar"
    folder.mkdir()
    ring = shutil.copy(etc / "keys", folder / "key-ring")
    words = ["backup", "--archive", "--with-secrets", "--key-file", ring, archive]
    told = run(etc, *words, CREDENTIALS_DIRECTORY=str(folder)).stdout
    assert key not in archive.read_bytes() and JWT_SECRET.encode() in archive.read_bytes(), "credentials are left out"
    assert "tokens stay sealed" in told and f"A restore also needs, from copies in another place: {ring}" in told, told


def without_hard_links(etc, archives):
    """A file system as FAT, where a copy gets its name by a rename, and still replaces no other file."""
    for error in ("EPERM", "EOPNOTSUPP", "ENOSYS"):
        archive = archives / f"{error}.tar"
        tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject=link,linkat:error={error}"]
        run(etc, "backup", "--archive", archive, prefix=tracer)
        assert b"SQLite format 3" in archive.read_bytes(), "the archive is complete"
        run(etc, "backup", "--archive", archive, expect=73, prefix=tracer)
    assert not [path.name for path in archives.iterdir() if "partial" in path.name], "no temporary file is left"


def modes(machine):
    return {
        str(path.relative_to(machine)): (stat.S_IMODE(path.stat().st_mode), path.owner(), path.group())
        for path in machine.rglob("*") if path.is_file()
    }


def running(fixture, etc, archive):
    """A worker's database is not replaced."""
    refused = run(etc, "restore", archive, expect=75).stderr
    assert "has the database" in refused and "systemctl stop" in refused, refused
    before = refreshed(fixture)
    wait_for(lambda: refreshed(fixture) > before, 60, "the worker goes on")


def lose(machine, *folders):
    shutil.rmtree(machine)
    for folder in folders:
        folder.mkdir(parents=True)


def restore(etc, archive, missing=()):
    """As docs/operate.md says, on a machine with a new configuration file."""
    (etc / "worker.conf").write_text("")
    (etc / "worker.conf").chmod(0o644)
    done = subprocess.run(
        [WORKER, "--config", etc / "worker.conf", "--database", etc.parent / "state" / "grants.sqlite",
         "--key-file", etc / "keys", "--jwt-secret-file", etc / "jwt", "restore", archive],
        capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == (78 if missing else 0), f"it ends as the doctor does: {done.stdout}{done.stderr}"
    assert "restored " in done.stdout and "database content" in done.stdout, f"it reports as the doctor: {done.stdout}"
    named = [line.split(".")[0] for line in done.stdout.splitlines() if line.startswith("missing: ")]
    assert named == [f"missing: {path}" for path in missing], f"it names what is missing: {done.stdout}"


def continues(fixture, etc):
    before = refreshed(fixture)
    worker = start(fixture, etc)
    wait_for(lambda: refreshed(fixture) >= before + 4, 60, "every grant is refreshed again")
    worker.terminate()
    assert worker.wait(timeout=60) == 0, "the worker stops in order"
    listed = [json.loads(line) for line in run(etc, "grants", "list", "--json").stdout.splitlines()]
    assert [grant["state"] for grant in listed] == ["active"] * 4, "no grant is lost"
