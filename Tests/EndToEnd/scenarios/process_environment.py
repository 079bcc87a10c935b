"""Mistakes of a supervisor or shell: closed descriptors, bad variables, and a pipe as configuration."""

import os
import subprocess
import time

from expectations import wait_for


def scenario(fixture):
    fixture.generate_keys()
    grant = fixture.sandbox.create(email="ada@example.com")[0]
    fixture.import_grants([grant])

    # A token that cannot be written is not delivered.
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *fixture.arguments("token", "ada@example.com")],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env=fixture.environment,
    )
    assert closed.returncode == 74, "a command without standard output exits with 74"
    assert "standard output" in closed.stderr, "the command names standard output"
    full = subprocess.run(
        fixture.arguments("token", "ada@example.com"), stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE,
        text=True, timeout=60, env=fixture.environment,
    )
    assert full.returncode == 74 and "No space left" in full.stderr, "a full standard output is reported"
    silent = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *fixture.arguments("token", "nobody")], stdout=subprocess.PIPE, timeout=60,
        env=fixture.environment,
    )
    assert silent.returncode == 67, "a command without standard error keeps its exit code"

    # A pipe without a writer.
    pipe = fixture.folder / "pipe"
    os.mkfifo(pipe)
    began = time.monotonic()
    fixture.run("--config", pipe, "--run-once", expect=78, timeout=60)
    assert time.monotonic() - began < 20, "the command ends soon"

    # Bad variables from a supervisor are reported, and the grants are still refreshed.
    worker = fixture.start(environment={"NOTIFY_SOCKET": "not a socket", "WATCHDOG_USEC": "1"}).wait_started()
    fixture.set_due(int(time.time() * 1000))
    wait_for(lambda: worker.events("refresh", outcome="refreshed"), 60, "a refresh")
    wait_for(lambda: len(worker.events("started")) and time.monotonic() - began > 3, 60, "a few seconds pass")
    worker.stop()
    lines = worker.errors.read_text().splitlines()
    assert any("NOTIFY_SOCKET" in line for line in lines), "the bad address is reported"
    assert len(lines) < 20, "the log stays short"
    return f"{len(lines)} lines of diagnostics"
