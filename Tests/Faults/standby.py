"""Fail-over of PostgreSQL: with a synchronous standby nothing is lost; with an asynchronous one the losses are
counted."""

import os
import subprocess
import time

from judge import judge
from postgres import GRANTS, JOBS_FACTOR, Fault, Trial, template  # noqa: F401
from proxy import Proxy
from trial import ROOT

PROGRAMS = sorted(ROOT.__class__("/usr/lib/postgresql").glob("*/bin"))


class Cluster:
    """A primary and a standby, each behind a proxy, and one more between them."""

    def __init__(self, one, synchronous):
        self.one = one
        self.programs = PROGRAMS[-1]
        one.folder.chmod(0o755)
        self.folders = [one.folder / "postgres", one.folder / "standby"]
        with open(self.folders[0] / "data" / "pg_hba.conf", "a") as rules:
            rules.write("local replication all trust\nhost replication all 127.0.0.1/32 trust\n")
        self.start(0)
        self.link = Proxy(self.folders[0] / ".s.PGSQL.5432")
        self.folders[1].mkdir()
        self.as_server("chown", "postgres", self.folders[1], root=True)
        self.as_server(
            self.programs / "pg_basebackup",
            "--pgdata",
            self.folders[1] / "data",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--dbname",
            f"host={self.folders[0]} user=postgres",
        )
        with open(self.folders[1] / "data" / "postgresql.auto.conf", "a") as settings:
            settings.write(f"primary_conninfo = 'host=127.0.0.1 port={self.link.port} user=postgres sslmode=disable'\n")
        self.start(1)
        if synchronous:
            self.query(0, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.query(0, "SELECT pg_reload_conf()")
        self.wait(lambda: "streaming" in self.query(0, "SELECT state FROM pg_stat_replication"), "the standby streams")
        if synchronous:
            self.wait(
                lambda: "sync" in self.query(0, "SELECT sync_state FROM pg_stat_replication"),
                "the standby is synchronous",
            )
        self.proxies = [Proxy(folder / ".s.PGSQL.5432") for folder in self.folders]
        hosts = ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies)
        one.database = f"postgres://postgres@{hosts}/postgres?sslmode=disable&target_session_attrs=read-write"

    def as_server(self, *words, root=False):
        prefix = [] if root or os.getuid() else ["runuser", "-u", "postgres", "--"]
        result = subprocess.run([*prefix, *map(str, words)], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=90)
        if result.returncode:
            raise Fault(f"{words[0]}: {result.stdout[-500:]}")

    def control(self, number, *words):
        folder = self.folders[number]
        # The server must not keep a pipe open on whose end this script waits.
        self.as_server("sh", "-c", f'exec "$0" "$@" >{folder}/log.control 2>&1', self.programs / "pg_ctl",
                       f"--pgdata={folder}/data", "--wait", "--timeout=60", *words)

    def start(self, number):
        folder = self.folders[number]
        self.control(number, f"--log={folder}/log", "--options",
                     f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off -c max_connections=200"
                     " -c shared_buffers=32MB -c wal_level=replica -c max_wal_senders=4 -c hot_standby=on", "start")

    def query(self, number, statement):
        result = subprocess.run(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", f"--command={statement}",
             f"host={self.folders[number]} user=postgres dbname=postgres"],
            capture_output=True, text=True, timeout=30,
        )
        if result.returncode:
            raise Fault(f"psql: {statement}: {result.stderr[-300:]}")
        return result.stdout

    def wait(self, condition, message):
        deadline = time.monotonic() + 30
        while not condition():
            if time.monotonic() > deadline:
                raise Fault(f"not within 30 s: {message}")
            time.sleep(0.05)

    def fail_over(self, lag):
        """The primary disappears at once, and the standby takes over; `lag` is the time for which it had received
        nothing."""
        if lag:
            self.link.pass_only()
            time.sleep(lag)
        # The proxy is closed and not only cut: libpq tries the next host when a connection is refused, not when it is
        # accepted and ended.
        self.proxies[0].close()
        self.link.close()
        self.control(0, "--mode=immediate", "stop")
        self.control(1, "promote")

    def close(self):
        for proxy in (self.link, *self.proxies):
            if proxy.is_alive():
                proxy.close()
        for worker in self.one.workers:
            worker.end()
        for number in (0, 1):
            if (self.folders[number] / "data" / "postmaster.pid").exists():
                self.control(number, "--mode=immediate", "stop")


def trial(part, seed, index, base, template):  # noqa: F811
    synchronous = index % 2 == 0
    # The lag of an asynchronous standby; a synchronous one that is cut off blocks every commit instead.
    lag = 0 if synchronous else [0, 1][index // 2 % 2]
    with Trial(part, seed, index, base, template, lifetime=4) as one:
        cluster = Cluster(one, synchronous)
        try:
            worker = one.start()
            worker.wait_for(lambda: worker.text().count('"refreshed"') > 2 * GRANTS, 60, "grants are refreshed")
            time.sleep(one.chance.random())
            cluster.fail_over(lag)
            target = one.google.requests + GRANTS
            if not worker.wait_for(lambda: one.google.requests >= target, 100, "refreshes go on after the fail-over"):
                raise Fault(f"the worker ended with {worker.process.returncode}: {worker.said()}")
            if code := worker.stop(60):
                raise Fault(f"the worker ended with {code}: {worker.said()}")
            counts = judge(one, may_lose=not synchronous)
        finally:
            cluster.close()
        name = "synchronous" if synchronous else f"asynchronous, {lag} s behind"
        one.say(f"{name}: {counts}")
        lost = counts.pop("grants that lost a reported token", 0)
        return {**counts, f"lost ({name})": lost, f"fail-overs ({name})": 1}, one.story
