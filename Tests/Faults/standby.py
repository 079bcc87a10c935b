"""Fail-over of PostgreSQL: with a synchronous standby nothing is lost, also if someone cancels the waits for it; with
an asynchronous one the losses are counted."""

from expectations import wait_for
from postgres import GRANTS, JOBS_FACTOR, template  # noqa: F401
from postgres_server import Server
from proxy import Proxy
from trial import Trial, pause
from verification import verify


class Cluster:
    """A primary and a standby, each behind a proxy, and one more between them."""

    def __init__(self, one, synchronous):
        self.one = one
        self.primary = Server(one.folder)
        self.link = Proxy(socket_of(self.primary))
        source = f"host=127.0.0.1 port={self.link.port} user=postgres sslmode=disable"
        self.standby = self.primary.standby([f"primary_conninfo={source}"])
        if synchronous:
            self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.primary.execute("SELECT pg_reload_conf()")
        expected = {"state": "streaming", "sync_state": "sync" if synchronous else "async"}
        wait_for(lambda: self.replication() == [expected], 30, "the standby streams")
        self.proxies = [Proxy(socket_of(server)) for server in (self.primary, self.standby)]
        hosts = ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies)
        one.database = f"postgres://postgres@{hosts}/postgres?sslmode=disable&target_session_attrs=read-write"

    def replication(self):
        return self.primary.query("SELECT state, sync_state FROM pg_stat_replication")

    def cancel_waits(self, seconds):
        """Cuts the standby off, and ends every wait for it: the primary then commits without it, and warns."""
        self.link.pass_only()
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        cancelled = 0
        for _ in range(10 * seconds):
            cancelled += self.primary.execute(cancel).count("t")
            pause(0.1)
        assert cancelled, "commits wait for the standby"
        return cancelled

    def fail_over(self, lag):
        """The primary disappears at once, and the standby takes over; `lag` is the time for which it had received
        nothing."""
        if lag:
            self.link.pass_only()
            pause(lag)
        # The proxy is closed and not only cut: libpq tries the next host when a connection is refused, not when it is
        # accepted and ended.
        self.proxies[0].close()
        self.link.close()
        self.primary.stop()
        self.standby.promote()

    def close(self):
        for proxy in (self.link, *self.proxies):
            if proxy.is_alive():
                proxy.close()
        for worker in self.one.workers:
            worker.end()
        for server in (self.standby, self.primary):
            if server.is_running:
                server.stop()


def socket_of(server):
    return server.folder / ".s.PGSQL.5432"


def trial(part, seed, index, base, template):  # noqa: F811
    synchronous = index % 2 == 0
    # The lag of an asynchronous standby; a synchronous one that is cut off blocks every commit instead.
    lag = 0 if synchronous else [0, 1][index // 2 % 2]
    cancels = index % 4 == 0
    with Trial(part, seed, index, base, template, lifetime=4) as one:
        cluster = Cluster(one, synchronous)
        try:
            worker = one.start()
            worker.wait_for(lambda: worker.text().count('"refreshed"') > 2 * GRANTS, 60, "grants are refreshed")
            pause(one.chance.random())
            if cancels:
                one.note(f"{cluster.cancel_waits(seconds=3)} waits cancelled")
            cluster.fail_over(lag)
            target = one.google.requests + GRANTS
            continues = worker.wait_for(
                lambda: one.google.requests >= target, 100, "refreshes continue after the fail-over"
            )
            assert continues, f"the worker runs after the fail-over; it wrote: {worker.output()}"
            assert worker.stop(60) == 0, f"the worker stops in order; it wrote: {worker.output()}"
            counts = verify(one, may_lose=not synchronous)
        finally:
            cluster.close()
        name = f"synchronous{', waits cancelled' * cancels}" if synchronous else f"asynchronous, {lag} s behind"
        one.note(f"{name}: {counts}")
        lost = counts.pop("grants that lost a reported token", 0)
        return {**counts, f"lost ({name})": lost, f"fail-overs ({name})": 1}, one.notes
