"""Databases full of grants for the worker, and the worker's command line on them."""

import contextlib
import json
import pathlib
import sqlite3
import subprocess
import time

from . import paths


class Grants:
    """One database with its key ring, in its own folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.database = self.folder / "grants.sqlite"
        self.keys = self.folder / "keys"
        self._call(paths.WORKER, "keys", "generate", "--key-file", self.keys)
        self.written = 0

    def fill(self, count, start=None, outage=0, within=None, bound=False):
        """Writes a population's grants, as described in BenchmarkSeed --help, and returns their number."""
        if bound:
            self._call(paths.WORKER, "keys", "add-binding", "--key-file", self.keys)
        words = [paths.SEED, "fill", "--database", self.database, "--keys", self.keys]
        # Creating the indexes after all rows takes a fraction of the time.
        self._call(*words, "--grants", 0)
        indexes = self._drop_indexes()
        words += ["--grants", count, "--outage", outage, "--start", int((start or time.time()) * 1000)]
        if within is not None:
            words += ["--within", within]
        if bound:
            words += ["--bound", 1]
        self.written = json.loads(self._call(*words))["written"]
        self._make_indexes(indexes)
        return self.written

    def settings(self, endpoint, version="h2"):
        """The worker's settings for this database and that endpoint, as fast as it can."""
        return ["--database", self.database, "--key-file", self.keys, "--client-id", "bench",
                "--token-endpoint", endpoint.url(version), "--ca-file", endpoint.ca_file, "--max-rate", "100000"]

    def verify(self, issued):
        """Opens every stored token and compares it with the issued one; a difference ends the benchmark."""
        words = [paths.SEED, "verify", "--database", self.database, "--keys", self.keys, "--issued", issued]
        return json.loads(self._call(*words))

    def verify_once_each(self, issued, refreshed=None):
        """The same; in addition no grant may have been refreshed twice, and `refreshed` grants, if given, must have
        been."""
        outcome = self.verify(issued)
        if outcome["most"] != 1 or outcome["older"] != 0 or outcome["refreshed"] != (refreshed or outcome["refreshed"]):
            raise SystemExit(f"{refreshed or 'some'} grants were due; the outcome: {outcome}")

    def exercise(self, count, ahead=0):
        """Claims and commits grants without an endpoint, as if it were later, and returns the cost of each."""
        words = [
            paths.SEED,
            "exercise",
            "--database",
            self.database,
            "--keys",
            self.keys,
            "--grants",
            count,
            "--ahead",
            ahead,
        ]
        return json.loads(self._call(*words))

    def due(self, instant=None):
        """The number of grants that are due now, or were due then and have not been refreshed since."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            query = "SELECT count(*) FROM grants WHERE due_at <= ?"
            return connection.execute(query, [(instant or time.time()) * 1000]).fetchone()[0]

    def bytes(self):
        return sum(file.stat().st_size for file in self.folder.glob("grants.sqlite*"))

    def _drop_indexes(self):
        # That of the history stays: before the store adds an event, it looks for old ones of the same grant.
        query = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'grants' AND sql IS NOT NULL"
        with sqlite3.connect(self.database, isolation_level=None) as connection:
            indexes = connection.execute(query).fetchall()
            for name, _ in indexes:
                connection.execute(f"DROP INDEX {name}")
        connection.close()
        return [sql for _, sql in indexes]

    def _make_indexes(self, indexes):
        connection = sqlite3.connect(self.database, isolation_level=None)
        connection.execute("PRAGMA cache_size = -200000")
        for sql in indexes:
            connection.execute(sql)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    @staticmethod
    def _call(*words):
        answer = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if answer.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, words))} failed:\n{answer.stdout}{answer.stderr}")
        return answer.stdout
