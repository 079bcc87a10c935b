"""Bad input gets a clear error that names the cause, a documented exit code, and loses nothing."""

import json
import os
import sqlite3
import subprocess

from harness import WORKER
from integrity import damage

# It is about locked and damaged files.
STORE = "sqlite"


def scenario(fixture):
    sandbox = fixture.sandbox
    fixture.generate_keys()
    grants = sandbox.create(3)
    fixture.import_grants(grants)

    def refused(code, *command, names, stdin=None, prefix=()):
        result = fixture.run(*command, expect=code, stdin=stdin, prefix=prefix)
        for name in names:
            assert name in result.stderr, f"`{' '.join(map(str, command))}` names {name!r}"
        return result

    refused(64, "--no-such-flag", names=["--no-such-flag"])
    refused(64, "grants", "lsit", names=["lsit"])
    refused(64, "--max-rate", "fast", names=["--max-rate", "fast"])
    refused(64, "--token-endpoint", "http://example.com/token", names=["--token-endpoint", "https"])
    refused(67, "token", "nobody", names=["no grant"])

    # Import: bad lines are named, good ones are stored, and no existing grant changes.
    fresh = sandbox.create(1)[0]
    lines = [
        "{not json",
        json.dumps({"user_id": "x" * 1_000_000, "access_token": "a", "expires_in": 1}),
        json.dumps({"access_token": "a"}),
        json.dumps({"user_id": "fresh", "refresh_token": fresh["refresh_token"]}),
        json.dumps({"user_id": "fresh", "refresh_token": "another"}),
        json.dumps({"user_id": grants[0]["email"], "refresh_token": "z"}),
    ]
    result = refused(
        65, "grants", "import", "-", names=["line 1", "line 2", "line 3", "line 5", "line 6"], stdin="\n".join(lines)
    )
    assert "line 4" not in result.stderr, "the good line is accepted"
    assert len(fixture.rows()) == 4, "the three old grants and the new one are stored"
    refused(66, "grants", "import", fixture.folder / "missing.jsonl", names=["missing.jsonl"])

    # The key file.
    fixture.keys.chmod(0o644)
    refused(78, "--run-once", names=[str(fixture.keys), "chmod"])
    fixture.keys.chmod(0o600)
    saved = fixture.keys.read_bytes()
    fixture.keys.unlink()
    refused(78, "--run-once", names=[str(fixture.keys), "keys generate"])
    fixture.generate_keys()
    wrong = fixture.run("token", "fresh", expect=78)
    assert "key" in wrong.stderr, "the error names the wrong key"
    fixture.keys.write_bytes(saved)
    fixture.keys.chmod(0o600)
    assert fixture.run("token", "fresh").stdout.strip(), "the right key opens the token"

    # The database.
    def with_database(change, code, names):
        copy = fixture.folder / "copy.sqlite"
        for path in fixture.folder.glob("copy.sqlite*"):
            path.unlink()
        fixture.run("backup", copy)
        change(copy)
        original, fixture.database = fixture.database, copy
        try:
            refused(code, "--run-once", names=names)
        finally:
            fixture.database = original

    def truncate(path):
        with open(path, "r+b") as file:
            file.truncate(5000)

    def newer(path):
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version = 9999")
        database.commit()
        database.close()

    with_database(truncate, 78, ["copy.sqlite"])
    with_database(lambda path: path.write_bytes(b"this is not a database" * 500), 78, ["copy.sqlite"])
    with_database(newer, 78, ["Upgrade", "9999"])

    # A locked file is reported, and nothing is lost.
    lock = sqlite3.connect(fixture.database, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    refused(75, "grants", "disconnect", "fresh", names=["Another process"])
    lock.execute("ROLLBACK")
    lock.close()

    # An untrusted certificate and a name that does not resolve: both are temporary errors and never change a state.
    result = subprocess.run(
        [WORKER, "--run-once", "--database", fixture.database, "--key-file", fixture.keys, "--client-id", "c",
         "--token-endpoint", "https://no-such-host.invalid/token", "--metrics-log", fixture.folder / "none.jsonl"],
        capture_output=True, text=True, timeout=120,
    )
    assert result.returncode in (0, 75), "an endpoint without an address is a temporary failure"
    assert set(fixture.states()) <= {"active", "retrying"}, "an endpoint without an address ends no grant"

    # A full disk is reported, and the database stays intact.
    full = fixture.folder / "full"
    full.mkdir()
    if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", full]).returncode == 0:
        try:
            original, fixture.database = fixture.database, full / "grants.sqlite"
            more = sandbox.create(3000)
            lines = "".join(
                json.dumps({"user_id": g["email"], "refresh_token": g["refresh_token"]}) + "\n" for g in more
            )
            result = fixture.run("grants", "import", "-", expect=74, stdin=lines)
            assert "full" in result.stderr.lower(), "the error names the full disk"
            assert damage(fixture) == {}, "the database on the full disk is intact"
        finally:
            fixture.database = original
            subprocess.run(["umount", full], check=True)
        note = ""
    else:
        note = "skipped the full disk: mounting needs root"
    assert damage(fixture) == {}, "the database is intact"
    return note
