"""The checks of demo.yaml: its commands word for word, as a person at a terminal runs them."""

import json
import os
import re
import signal
import subprocess

from checklist import adding_to
from expectations import wait_for

CHECKS = []
check = adding_to(CHECKS)
FILE = "deploy/container/demo.yaml"
PROJECT = "refresh-worker-demo"
WORKER = f"{PROJECT}_worker_1"
PAGE = "http://127.0.0.1:9464/"
# The life of a token in seconds: each is refreshed before its end.
LIFETIME = 180


def curl(it, path="", *options):
    """The page from this machine, and not from the network of the containers."""
    return it.engine.call("curl", "--silent", "--fail", "--max-time", "10", *options, PAGE + path, expect=None)


def log(it):
    """The last lines at the terminal."""
    return (it.engine.folder / "demo.log").read_text(errors="replace")[-3000:]


@check("the command of demo.yaml builds and starts it; its page answers this machine", needed=True)
def up(it):
    it.make_programs()
    assert not curl(it), f"nothing else answers at {PAGE}"
    with open(it.engine.folder / "demo.log", "w") as output:
        # In a process group of its own, like a command at a terminal.
        it.demo = subprocess.Popen(
            ["/bin/sh", "-c", it.line(FILE, "demo.yaml up")], cwd=it.source, env=it.engine.environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )
    try:
        wait_for(lambda: "<html" in curl(it) or it.demo.poll() is not None, 3000, lambda: f"it starts: {log(it)}", 1)
    except BaseException:
        os.killpg(it.demo.pid, signal.SIGKILL)
        raise
    assert it.demo.poll() is None, f"it runs until it is stopped: {log(it)}"


@check("each grant is refreshed, and the log shows it", needed=True)
def refreshes(it):
    it.wait_refreshing(WORKER, seconds=LIFETIME)
    lines = [line for line in it.engine.logs(WORKER).splitlines() if line.startswith("{")]
    events = [event for event in map(json.loads, lines) if event["event"] == "refresh"]
    refreshed = {event["grant"] for event in events if event["outcome"] == "refreshed"}
    assert len(refreshed) == len(it.successes(WORKER)) == 8, "a line for each grant"


@check("after the command of demo.yaml the page shows that the grant of a user ended")
def refuse(it):
    credential = re.search(r"rwc_\S+", it.engine.logs(WORKER))[0]

    def bela():
        return curl(it, "users?user=bela", "--user", f"demo:{credential}")

    assert "<html" in bela() and "invalid_grant" not in bela(), "the grant is good before"
    it.documented(FILE, "demo.yaml exec")
    wait_for(lambda: "invalid_grant" in bela(), LIFETIME, lambda: f"the grant ended: {bela()[-1500:]}", pause=1)


@check("Ctrl-C ends it")
def interrupt(it):
    os.killpg(it.demo.pid, signal.SIGINT)
    it.demo.wait(timeout=60)
    assert '"event":"stopped"' in log(it), f"the worker stops in order: {log(it)}"
    running = it.engine.podman("ps", "--quiet", "--filter", f"name={PROJECT}_")
    assert not running, f"no container runs: {log(it)}"
