"""A PostgreSQL server for one benchmark, with databases full of grants."""

import contextlib
import pathlib
import subprocess
import time

from . import delay, grants, measuring, paths, programs

# Set up as for a server that holds tokens: every commit is durable before it is confirmed.
SETTINGS = ["fsync=on", "full_page_writes=on", "synchronous_commit=on", "shared_buffers=256MB", "max_connections=200"]


class Server:
    """A running server on a socket in its folder; `with Server(folder) as server`."""

    def __init__(self, folder, settings=()):
        self.folder = pathlib.Path(folder)
        self.settings = [*SETTINGS, *settings]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop("fast")

    def start(self):
        programs.call("scripts/postgres-for-tests", "start", self.folder, *self.settings)

    def stop(self, mode):
        programs.call("scripts/postgres-for-tests", "stop", self.folder, mode)

    @contextlib.contextmanager
    def confirmed_by_standby(self, seconds):
        """Makes every commit wait for a synchronous standby that is as far away: each direction takes this time."""
        folder = self.folder.parent / "standby"
        with delay.Proxy(self.socket, seconds) as proxy:
            source = f"host=127.0.0.1 port={proxy.port} user=postgres sslmode=disable"
            programs.call("scripts/postgres-for-tests", "standby", folder, self.folder, f"primary_conninfo={source}")
            try:
                self._reload("SET synchronous_standby_names = '*'")
                states = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
                measuring.wait_for(lambda: self.ask("postgres", states) == 1, 30, "the standby is synchronous")
                yield
            finally:
                self._reload("RESET synchronous_standby_names")
                programs.call("scripts/postgres-for-tests", "stop", folder, "immediate")

    def _reload(self, change):
        for statement in [f"ALTER SYSTEM {change}", "SELECT pg_reload_conf()"]:
            self.rows("postgres", statement)

    @property
    def socket(self):
        return self.folder / ".s.PGSQL.5432"

    def url(self, database, port=None):
        """The URL of a database: on the server's socket, or through a proxy on that port."""
        place = f"host={self.folder}" if port is None else f"host=127.0.0.1&port={port}&sslmode=disable"
        return f"postgres://postgres@/{database}?{place}"

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

    def cpu_seconds(self):
        """The processor time of all the server's processes so far."""
        process = (self.folder / "data" / "postmaster.pid").read_text().split()[0]
        return measuring.cpu_seconds_with_children(process)

    def wal_bytes(self):
        """The bytes of the write-ahead log so far."""
        return self.ask("postgres", "SELECT pg_current_wal_insert_lsn() - '0/0'")

    def create(self, database):
        programs.call("createdb", "--host", self.folder, "--username", "postgres", database)


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

    def reorder(self, batch):
        """Orders the rows of grants as if so many at a time had been added, each batch in the order of their ids."""
        batches = self.written // batch
        for table, key in [("grants", "id"), ("grant_schedule", "grant_id")]:
            for statement in [
                f"CREATE INDEX reordered ON refresh_worker.{table} ((abs(hashint8({key})) % {batches}), {key})",
                f"CLUSTER refresh_worker.{table} USING reordered",
                "DROP INDEX refresh_worker.reordered",
            ]:
                self.server.rows(self.name, statement)

    @contextlib.contextmanager
    def away(self, seconds):
        """Puts the workers that start now as far from the server: each direction takes this time."""
        if seconds == 0:
            yield None
            return
        with delay.Proxy(self.server.socket, seconds) as proxy:
            near, self.database = self.database, self.server.url(self.name, proxy.port)
            yield proxy
            self.database = near

    def due(self):
        return self.server.ask(
            self.name, f"SELECT count(*) FROM refresh_worker.grant_schedule WHERE due_at <= {time.time() * 1000:.0f}"
        )
