"""The building blocks of the end-to-end scenarios: the real worker, the sandbox, and access to the real database.

No wait has a fixed length: each is for an event or a condition, with a deadline.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from expectations import ROOT, wait_for
from postgres_server import Server

BINARIES = pathlib.Path(os.environ.get("BINARIES", ROOT / ".build" / "debug"))
WORKER = BINARIES / "refresh-worker"
# The debug build takes steps of the schema that a later version could have (Sources/Storage/SQL/SchemaStep.swift).
NEXT_WORKER = pathlib.Path(os.environ.get("NEXT_WORKER", ROOT / ".build" / "debug" / "refresh-worker"))
SANDBOX = pathlib.Path(os.environ.get("SANDBOX", BINARIES / "google-sandbox"))
CLIENT = "1234-demo.apps.googleusercontent.com"
# Each grant with the name of the worker that holds its lease.
GRANTS = "SELECT grants.*, leases.owner AS lease_owner FROM grants LEFT JOIN boot.leases ON grant_id = id"
BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
GRANTS_ON_SERVER = """
    SELECT g.*, due_at, lease_owner, lease_claim, lease_epoch, lease_until
    FROM grants AS g JOIN grant_schedule ON grant_id = id
"""


class Skipped(Exception):
    """The scenario needs something that is missing; the message names it."""


class Sandbox:
    """A running google-sandbox."""

    def __init__(self, fixture):
        self.log = open(fixture / "sandbox.log", "wb")
        self.process = subprocess.Popen(
            [SANDBOX, "--port", "0", "--quiet"], stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        line = self.process.stdout.readline()
        self.url = line.split()[-1]
        assert self.url.startswith("http://127.0.0.1:"), "the sandbox prints its address"

    def call(self, path, body=None, timeout=60):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method="GET" if body is None else "POST")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"the sandbox answers {path}: {error.code} {error.read()[:200]!r}") from error

    def settings(self, **changes):
        return self.call("/control/settings", changes)

    def create(self, count=0, **fields):
        if fields:
            return self.call("/control/grants", {"grants": [fields]})
        return self.call("/control/grants", {"count": count, "prefix": "user"})

    def create_expired(self, email, **fields):
        """A grant whose first access token has expired, and whose next ones are valid."""
        grant = self.create(email=email, lifetime=-60, **fields)[0]
        self.call("/control/grants/set", {"refresh_token": grant["refresh_token"], "lifetime": None})
        return grant

    def change(self, grant, **fields):
        return self.call("/control/grants/set", {"email": grant["email"], **fields})

    def stats(self, grants=False):
        return self.call("/control/stats" + ("?grants=1" if grants else ""))

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.log.close()


def with_values(statement, values):
    """A statement for psql, which takes no parameters: the values replace SQLite's question marks."""
    for value in values:
        literal = str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
        statement = statement.replace("?", literal, 1)
    return statement


class Fixture:
    """A folder for one scenario, with its database, key ring, logs and processes.

    `store` is the kind of store: `sqlite`, a file in the folder, or `postgres`, a server for this scenario.
    """

    def __init__(self, name, store="sqlite"):
        self.name = name
        self.store = store
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"refresh-worker-{name}-"))
        self.own_server = Server(self.folder) if store == "postgres" else None
        # The server that the scenario reads and changes; after a fail-over it is another one.
        self.server = self.own_server
        # The database: a path or a URL.
        self.database = self.server.url if self.server else self.folder / "grants.sqlite"
        self.keys = self.folder / "keys"
        self.sandbox = Sandbox(self.folder)
        self.sandbox.settings(clients=[CLIENT])
        self.workers = []
        # The settings of an installed worker are not meant.
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "REFRESH_WORKER_CONFIG": "/dev/null"
        }

    def arguments(self, *extra):
        url = self.sandbox.url
        # Without a flag, an environment variable names the database.
        database = ["--database", str(self.database)] if self.database else []
        return [
            str(WORKER), *database, "--key-file", str(self.keys), "--client-id", CLIENT,
            "--token-endpoint", url + "/token", "--userinfo-endpoint", url + "/v1/userinfo",
            "--tokeninfo-endpoint", url + "/tokeninfo", "--revocation-endpoint", url + "/revoke",
            *[str(argument) for argument in extra],
        ]

    def run(self, *extra, expect=0, stdin=None, prefix=(), timeout=330):
        """Runs one command to its end and returns its result."""
        result = subprocess.run(
            [*prefix, *self.arguments(*extra)], input=stdin, capture_output=True, text=True, timeout=timeout,
            env=self.environment,
        )
        with open(self.folder / "commands.log", "a") as log:
            log.write(f"$ {' '.join(map(str, extra))}\n{result.stdout}{result.stderr}-> {result.returncode}\n")
        if expect is not None:
            # A report with concerns is a report.
            expected = (0, 1, 3, 4) if expect == 0 and extra[0] == "status" else (expect,)
            assert result.returncode in expected, (
                f"`{' '.join(map(str, extra))}` exits with the expected code; it wrote: {result.stderr[-500:]}"
            )
        return result

    def generate_keys(self):
        # The scenarios also make rings beside a database that holds tokens of another one.
        self.run("keys", "generate", "--lost")

    def import_grants(self, grants, *extra, **more):
        """Imports grants as the sandbox created them; each user is named by the grant's e-mail address."""
        lines = "".join(json.dumps(import_line(grant, **more)) + "\n" for grant in grants)
        return self.run("grants", "import", "-", *extra, stdin=lines)

    def start(self, *extra, prefix=(), environment=None, pass_fds=()):
        worker = Worker(self, extra, prefix, environment or {}, pass_fds)
        self.workers.append(worker)
        return worker

    def suspend_between_transactions(self, worker):
        """Stops a worker with SIGSTOP while it holds no lock in the SQLite file: otherwise no one else could write.

        PostgreSQL itself ends a transaction whose client is stopped.
        """
        for _ in range(100):
            worker.signal(signal.SIGSTOP)
            if self.server or self.can_write():
                return
            worker.signal(signal.SIGCONT)
        raise AssertionError("the worker is stopped between two transactions")

    def can_write(self):
        """Whether a process can begin to write to the SQLite file, within a second."""
        with contextlib.closing(sqlite3.connect(self.database, timeout=1, isolation_level=None)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                return False
            database.execute("ROLLBACK")
            return True

    def rows(self, query=None, *values):
        """The rows of a query in the store's SQL; without a query, the grants."""
        if self.server:
            return self.server.query(with_values(query or GRANTS_ON_SERVER, values))
        query = query or GRANTS
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as database:
            database.row_factory = sqlite3.Row
            leases = pathlib.Path(f"{self.database}-leases-{BOOT}")
            if leases.exists():
                database.execute("ATTACH ? AS boot", [f"file:{leases}?mode=ro"])
            return [dict(row) for row in database.execute(query, values)]

    def write(self, statement, *values):
        """Changes the stored tables without the workers' knowledge."""
        if self.server:
            self.server.execute(with_values(statement, values))
            return
        with contextlib.closing(sqlite3.connect(self.database, timeout=30)) as database:
            # A worker stops if another process makes a checkpoint.
            database.execute("PRAGMA wal_autocheckpoint = 0")
            database.execute(statement, values)
            database.commit()

    def set_due(self, milliseconds, user=None):
        """Sets the due time of a user's grant, or of all."""
        table, key = ("grant_schedule", "grant_id") if self.server else ("grants", "id")
        owned = "" if user is None else f" WHERE {key} = (SELECT id FROM grants WHERE user_id = ?)"
        self.write(f"UPDATE {table} SET due_at = ?{owned}", milliseconds, *([] if user is None else [user]))

    def grants(self):
        """The grants by user."""
        return {row["user_id"]: row for row in self.rows()}

    def states(self):
        counts = {}
        for row in self.rows("SELECT state, count(*) AS n FROM grants GROUP BY state"):
            counts[row["state"]] = row["n"]
        return counts

    def close(self, keep):
        for worker in self.workers:
            worker.kill()
        self.sandbox.stop()
        if self.own_server:
            for server in [*self.own_server.standbys, self.own_server]:
                if server.is_running:
                    server.stop()
        if not keep:
            shutil.rmtree(self.folder)


class Worker:
    """A running daemon, its metrics log in a file."""

    count = 0

    def __init__(self, fixture, extra, prefix, environment, pass_fds=()):
        Worker.count += 1
        self.metrics = fixture.folder / f"metrics-{Worker.count}.jsonl"
        self.errors = fixture.folder / f"errors-{Worker.count}.log"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [*prefix, *fixture.arguments("--metrics-log", self.metrics, *extra)],
                stdout=errors, stderr=errors, env={**fixture.environment, **environment}, pass_fds=pass_fds,
            )

    def events(self, name=None, **fields):
        """The events so far with this name and these fields."""
        if not self.metrics.exists():
            return []
        events = []
        for line in self.metrics.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            event = json.loads(line)
            if name in (None, event["event"]) and all(event.get(key) == value for key, value in fields.items()):
                events.append(event)
        return events

    def wait_started(self):
        wait_for(lambda: self.events("started") or self.process.poll() is not None, 60, "the worker started")
        assert self.process.poll() is None, f"the worker runs; it wrote: {self.errors.read_text()[-500:]}"
        return self

    def signal(self, number):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            # One thread takes the signal and stops the others: on a busy machine they continue for a while.
            result = os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert result.si_code == os.CLD_STOPPED, f"the worker stops; it wrote: {self.errors.read_text()[-500:]}"

    def stop(self, expect=0):
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        assert code == expect, f"the worker exits with the expected code; it wrote: {self.errors.read_text()[-500:]}"

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=60)


def in_place_of_worker(program, setup=""):
    """The prefix of a command that runs another program with the worker's arguments."""
    return ["bash", "-c", f'{setup}exec "$0" "${{@:2}}"', str(program)]


def passing(listener, name, program=WORKER):
    """The prefix of a command that passes a socket to the worker as systemd does."""
    setup = f"exec 3<&{listener.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={name} "
    return in_place_of_worker(program, setup)


def import_line(grant, refresh_token=True, **more):
    line = {
        "user_id": grant["email"],
        "access_token": grant["access_token"],
        "expires_at": time.strftime("%Y-%m-%dT%H:%M:%S.000000", time.gmtime(grant["expires_at"])),
        "scope": grant["scope"],
        "token_type": "Bearer",
        "google_user_id": grant["sub"],
        "google_email": grant["email"],
        "google_verified_email": True,
        "client_id": grant["client_id"],
        **more,
    }
    if refresh_token:
        line["refresh_token"] = grant["refresh_token"]
    return line
