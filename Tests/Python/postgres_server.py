"""A PostgreSQL server for one test, started by scripts/postgres-for-tests on a socket in its folder."""

import json
import os
import pathlib
import re
import subprocess

from expectations import ROOT, wait_for


def put_programs_first():
    """Puts PostgreSQL's own programs first in the path of this process and of those that it starts.

    Debian's psql is a Perl program that starts the one of the right version, and the tests start it often.
    """
    folders = list(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if folders:
        newest = max(folders, key=lambda folder: [int(part) for part in re.findall(r"\d+", folder.parent.name)])
        os.environ["PATH"] = f"{newest}:{os.environ['PATH']}"


class Server:
    """A running server; `settings` are additional ones of PostgreSQL, such as `wal_level=logical`."""

    def __init__(self, folder, primary=None, settings=()):
        # The server runs as another user, which must be able to reach the folder.
        folder.chmod(0o755)
        self.folder = folder / ("postgres" if primary is None else "standby")
        self.is_running = False
        self.standbys = []
        if primary is None:
            self.start(settings=settings)
        else:
            self.control("standby", primary.folder, *settings)

    def control(self, action, *more, environment=None):
        result = subprocess.run(
            [ROOT / "scripts/postgres-for-tests", action, self.folder, *more], capture_output=True, text=True,
            timeout=120, env={**os.environ, **(environment or {})},
        )
        assert result.returncode == 0, f"postgres-for-tests {action} succeeds; it wrote: {result.stderr[-500:]}"
        self.is_running = True
        self.url = f"postgres://postgres@/postgres?host={self.folder}"

    def start(self, environment=None, settings=()):
        self.control("start", *settings, environment=environment)
        self.execute("ALTER ROLE postgres SET search_path = refresh_worker, public")

    def standby(self, settings=()):
        """A streaming standby of this server; it ends with the server."""
        standby = Server(self.folder.parent, self, settings)
        self.standbys.append(standby)
        return standby

    def wait_until_replayed(self, standby):
        """Waits until the standby has everything that this server has committed."""
        position = self.execute("SELECT pg_current_wal_lsn()").strip()
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"
        wait_for(lambda: standby.execute(replayed).strip() == "t", 20, "the standby has replayed everything")

    def promote(self):
        self.control("promote")

    def stop(self, mode="immediate"):
        self.is_running = False
        subprocess.run([ROOT / "scripts/postgres-for-tests", "stop", self.folder, mode], check=True, timeout=120)

    def wait_for_session(self, name, condition, expectation, seconds=20):
        """Waits until a session with this application_name meets the condition."""
        sessions = f"SELECT pid FROM pg_stat_activity WHERE application_name = '{name}' AND {condition}"
        wait_for(lambda: self.query(sessions), seconds, f"a session of {name} {expectation}", pause=0.05)

    def end_sessions(self, name):
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'")

    def query(self, statement):
        """The rows of a statement, each a dictionary."""
        wrapped = f"SELECT coalesce(json_agg(row), '[]') FROM ({statement}) AS row"
        return json.loads(self.execute(wrapped))

    def execute(self, statement):
        """Runs SQL as the administrator and returns the output of psql."""
        result = subprocess.run(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
             f"--command={statement}", self.url],
            capture_output=True, text=True, timeout=60,
        )
        assert result.returncode == 0, f"psql accepts {statement}; it wrote: {result.stderr[-500:]}"
        return result.stdout
