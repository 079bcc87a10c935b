"""Mistakes of a supervisor or shell: closed descriptors, bad variables, and a pipe as configuration."""

import os
import subprocess
import time

from harness import check, wait_for


def scenario(place):
    place.generate_keys()
    grant = place.sandbox.create(email="ada@example.com")[0]
    place.bring_in([grant])

    # A token that cannot be written is not delivered.
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *place.arguments("token", "ada@example.com")], stderr=subprocess.PIPE, text=True,
        timeout=60, env=place.environment,
    )
    check(closed.returncode == 74, f"with standard output closed: exit {closed.returncode}")
    check("standard output" in closed.stderr, f"it says why: {closed.stderr!r}")
    full = subprocess.run(
        place.arguments("token", "ada@example.com"), stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE, text=True,
        timeout=60, env=place.environment,
    )
    check(full.returncode == 74 and "No space left" in full.stderr, f"/dev/full: {full.returncode}, {full.stderr!r}")
    unheard = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *place.arguments("token", "nobody")], stdout=subprocess.PIPE, timeout=60,
        env=place.environment,
    )
    check(unheard.returncode == 67, f"with standard error closed the exit code stays: {unheard.returncode}")

    # A pipe without a writer.
    pipe = place.folder / "pipe"
    os.mkfifo(pipe)
    began = time.monotonic()
    place.run("--config", pipe, "--run-once", expect=78, timeout=30)
    check(time.monotonic() - began < 20, "it did not wait long")

    # Bad variables from a supervisor are reported, and the grants are still refreshed.
    worker = place.start(environment={"NOTIFY_SOCKET": "not a socket", "WATCHDOG_USEC": "1"}).wait_started()
    place.set_due(int(time.time() * 1000))
    wait_for(lambda: worker.events("refresh", outcome="refreshed"), 30, "a refresh")
    wait_for(lambda: len(worker.events("started")) and time.monotonic() - began > 3, 30, "a few seconds pass")
    worker.stop()
    lines = worker.errors.read_text().splitlines()
    check(any("NOTIFY_SOCKET" in line for line in lines), f"the bad address is reported: {lines[:5]}")
    check(len(lines) < 20, f"{len(lines)} lines: {lines[:5]}")
    return f"{len(lines)} lines of diagnostics"
