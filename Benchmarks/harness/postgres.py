"""A PostgreSQL server for one benchmark, with databases full of grants."""

import os
import pathlib
import subprocess
import time

from . import grants, paths

# Set up as for a server that holds tokens: every commit is durable before it is confirmed.
OPTIONS = ["listen_addresses=", "fsync=on", "synchronous_commit=on", "shared_buffers=256MB", "max_connections=200"]


class Server:
    """A running server on a socket in its folder; `with Server(folder) as server`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        if not versions:
            raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
        self.programs = versions[-1]

    def __enter__(self):
        # The server refuses to run as root.
        if os.getuid() == 0:
            subprocess.run(["chown", "postgres", self.folder], check=True)
        self._call("initdb", "--pgdata", self.folder / "data", "--username=postgres", "--auth=trust", "--encoding=UTF8",
                   "--locale=C")
        self.start()
        return self

    def __exit__(self, *_):
        self.stop("fast")

    def start(self):
        options = [f"unix_socket_directories={self.folder}", *OPTIONS]
        self._call("pg_ctl", "--pgdata", self.folder / "data", "--wait", "--log", self.folder / "log",
                   "--options", " ".join(f"-c '{option}'" for option in options), "start")

    def stop(self, mode):
        self._call("pg_ctl", "--pgdata", self.folder / "data", "--wait", "--mode", mode, "stop")

    def url(self, database):
        return f"postgres://postgres@/{database}?host={self.folder}"

    def ask(self, database, query):
        """The single number that a query returns."""
        return int(self.rows(database, query)[0][0])

    def rows(self, database, query):
        """The rows of a query, as texts."""
        words = [
            "psql",
            "--host",
            self.folder,
            "--username",
            "postgres",
            "--no-align",
            "--tuples-only",
            "--field-separator=|",
            "--command",
            query,
        ]
        answer = subprocess.run([*map(str, words), database], capture_output=True, text=True, check=True).stdout
        return [line.split("|") for line in answer.splitlines()]

    def create(self, database):
        self._call("createdb", "--host", self.folder, "--username", "postgres", database)

    def _call(self, program, *words):
        command = [str(word) for word in [self.programs / program, *words]]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        # The server that pg_ctl starts would keep a pipe open for as long as it runs.
        with open(self.folder.parent / "server.calls", "w+b") as told:
            answer = subprocess.run(command, stdout=told, stderr=told, cwd="/")
            if answer.returncode != 0:
                told.seek(0)
                raise SystemExit(f"{' '.join(command)} failed:\n{told.read().decode()}")


class ServerGrants(grants.Grants):
    """Grants that are written to a file and moved to the server by `refresh-worker store copy`, as users do."""

    def __init__(self, folder, server, name):
        super().__init__(folder)
        self.server = server
        self.name = name

    def fill(self, count, **due):
        written = super().fill(count, **due)
        self.server.create(self.name)
        url = self.server.url(self.name)
        self._call(paths.WORKER, "store", "copy", "--from", self.database, "--to", url)
        self.database = url
        return written

    def due(self):
        return self.server.ask(
            self.name, f"SELECT count(*) FROM refresh_worker.grant_schedule WHERE due_at <= {time.time() * 1000:.0f}"
        )
