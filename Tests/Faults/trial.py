"""One trial: a folder with a store and a key ring, a strict server, the worker under faults, and its reports."""

import contextlib
import json
import mmap
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
import uuid

from disk import chance_for
from expectations import ROOT, seen, wait_for
from google import Google

BINARIES = pathlib.Path(os.environ.get("BINARIES", ROOT / ".build" / "debug")).resolve()
WORKER = BINARIES / "refresh-worker"
CLIENT = "1234-demo.apps.googleusercontent.com"
# Exit codes by which the worker reports that it stops for a reason in its log.
ORDERLY = {0, 74, 75, 78}
COMMAND_SECONDS = 60


class Control:
    """The counters that the fault library shares with this script; rules.c gives their order."""

    WORDS, ON, POWER_OFF, FIRST_RULE = 128, 0, 1, 4

    def __init__(self, path):
        path.write_bytes(bytes(8 * self.WORDS))
        self.path = path
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def get(self, word):
        return struct.unpack_from("=Q", self.memory, 8 * word)[0]

    def set(self, word, value):
        struct.pack_into("=Q", self.memory, 8 * word, value)

    def seen(self, rule):
        return self.get(self.FIRST_RULE + 2 * rule)

    def hits(self, rule=None):
        if rule is not None:
            return self.get(self.FIRST_RULE + 2 * rule + 1)
        return sum(self.get(word) for word in range(self.FIRST_RULE + 1, self.WORDS, 2))


class Template:
    """A store with grants that are all due, made once and copied for each trial."""

    kind = "sqlite"

    def __init__(self, folder, count):
        self.folder = folder / f"template-{self.kind}-{count}"
        self.names = [f"user{index}" for index in range(count)]
        if not (self.folder / "done").exists():
            self.make()
        self.users = self.read_users()

    def read_users(self):
        return read_users(self.folder / "grants.sqlite")

    def make(self):
        self.folder.mkdir(parents=True)
        command(self.arguments(), "keys", "generate")
        command(self.arguments(), "grants", "import", "-", stdin=self.lines())
        (self.folder / "done").touch()

    def arguments(self):
        return [str(WORKER), "--database", str(self.folder / "grants.sqlite"), "--key-file", str(self.folder / "keys"),
                "--client-id", CLIENT]

    def lines(self):
        return "".join(json.dumps({
            "user_id": name, "access_token": f"ya29.{name}-0", "refresh_token": f"1//{name}-0-refresh",
            "expires_at": "2026-01-01T00:00:00", "scope": "openid", "token_type": "Bearer",
        }) + "\n" for name in self.names)

    def copy(self, folder):
        folder.mkdir(parents=True)
        for name in ("grants.sqlite", "keys"):
            shutil.copy2(self.folder / name, folder / name)


def pause(seconds):
    """Lets the workers run before the next fault: a time of the seeded schedule, not a wait for an event."""
    time.sleep(seconds)


def read_users(database):
    """The user of each grant, by the grant's id as the metrics log writes it."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)) as connection:
        rows = connection.execute("SELECT id, user_id FROM grants").fetchall()
    return {f"{identity & (1 << 64) - 1:016x}": user for identity, user in rows}


def command(arguments, *extra, stdin=None, environment=None, expect=(0,), seconds=COMMAND_SECONDS):
    """Runs a command of the worker to its end."""
    try:
        result = subprocess.run(
            [*map(str, arguments), *map(str, extra)], input=stdin, capture_output=True, text=True, timeout=seconds,
            env={"PATH": os.environ["PATH"], **(environment or {})},
        )
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"`{' '.join(map(str, extra))}` ends within {seconds} s") from error
    assert expect is None or result.returncode in expect, (
        f"`{' '.join(map(str, extra))}` exits with an expected code; it wrote: {result.stderr[-600:]}"
    )
    return result


class Trial:
    """The folder and processes of one trial. Use it as a context: at its end all is stopped, and removed unless the
    trial failed."""

    def __init__(self, part, seed, index, base, template, lifetime=3, latency=0.03, certificate=None, database=None,
                 http2=None):
        self.name = f"{part}-{index}"
        self.chance = chance_for(part, seed, index)
        self.folder = base / self.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.disk = self.folder / "disk"
        template.copy(self.disk)
        self.users = dict(template.users)
        self.database = database or self.disk / "grants.sqlite"
        self.control = Control(self.folder / "control")
        self.journal = self.folder / "journal"
        self.boot = self.folder / "boot_id"
        self.new_boot()
        self.google = Google(template.names, chance_for("server", part, seed, index), lifetime, latency, certificate,
                             http2)
        self.certificate = certificate
        self.lives = []  # (start, end) of each process that could refresh
        self.workers = []
        self.notes = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for worker in self.workers:
            worker.end()
        self.google.stop()
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            error.add_note("; ".join(self.notes))

    def new_boot(self):
        # Leases and pauses of another boot count as over.
        self.boot.write_text(str(uuid.UUID(int=self.chance.getrandbits(128))) + "\n")

    def environment(self, rules=(), journal=False, **extra):
        environment = {
            "LD_PRELOAD": os.environ["FAULTS_LIBRARY"], "FAULTS_ROOT": str(self.disk), "FAULTS_BOOT_ID": str(self.boot),
            "FAULTS_CONTROL": str(self.control.path), "FAULTS_RULES": ";".join(rules),
            "FAULTS_SEED": str(self.chance.getrandbits(32)), "FAULTS_PARENT": str(os.getpid()), **extra,
        }
        if journal:
            environment["FAULTS_JOURNAL"] = str(self.journal)
        return environment

    def arguments(self, *extra):
        more = ["--ca-file", self.certificate] if self.certificate else []
        return [WORKER, "--database", self.database, "--key-file", self.disk / "keys", "--client-id", CLIENT,
                "--token-endpoint", self.google.url + "/token", "--revocation-endpoint", self.google.url + "/revoke",
                "--max-rate", 2000, *more, *extra]

    def run(self, *extra, rules=(), journal=False, **more):
        """Runs a command on the trial's store, without faults unless rules are given."""
        return command(self.arguments(), *extra, environment=self.environment(rules, journal), **more)

    def start(self, *extra, rules=(), journal=False, **environment):
        worker = Worker(self, extra, self.environment(rules, journal, **environment))
        self.workers.append(worker)
        return worker

    def metrics(self):
        """The events in all metrics logs of the trial."""
        return [event for path in sorted(self.folder.glob("metrics-*.jsonl")) for event in read_events(path)]

    def stored(self):
        """The stored grants by user, as lines of `grants export`."""
        output = self.run("grants", "export", "--plaintext").stdout
        return {line["user_id"]: line for line in map(json.loads, output.splitlines())}

    def note(self, text):
        self.notes.append(text)


def read_events(path):
    """The events in a metrics log, without a line that is not complete."""
    events = []
    for line in path.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            events.append(json.loads(line))
    return events


class Worker:
    """A daemon under the fault library."""

    def __init__(self, trial, extra, environment):
        number = len(list(trial.folder.glob("metrics-*.jsonl"))) + 1
        self.metrics = trial.folder / f"metrics-{number}.jsonl"
        self.metrics.touch()
        self.errors = trial.folder / f"errors-{number}.log"
        self.began = time.time()
        self.ended = None
        self.trial = trial
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [*map(str, trial.arguments("--metrics-log", self.metrics, "--stop-deadline", 5, *extra))],
                stdout=errors, stderr=errors, env={"PATH": os.environ["PATH"], **environment}, start_new_session=True,
            )

    def text(self):
        return self.metrics.read_text(errors="replace")

    def refreshed(self):
        """The grants that it has refreshed, each as often as it was."""
        return [event["grant"] for event in read_events(self.metrics)
                if event["event"] == "refresh" and event["outcome"] == "refreshed"]

    def wait(self, seconds):
        """Waits for the end of the process; returns its exit code, or `None` if it still runs."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.ended = self.ended or time.time()
        return code

    def wait_for(self, condition, seconds, expectation):
        """Waits until the condition is true; returns `False` if the worker ends before."""
        wait_for(
            lambda: condition() or self.wait(0) is not None, seconds,
            lambda: f"{expectation}\n{seen(condition)}\nthe worker wrote: {self.output()}", pause=0.02,
        )
        return condition()

    def stop(self, seconds=30):
        """Stops it by SIGTERM and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.wait(seconds)
        assert code is not None, f"SIGTERM ends the worker within {seconds} s; it wrote: {self.output()}"
        return code

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait(10)

    def output(self):
        return self.errors.read_text(errors="replace")[-800:]
