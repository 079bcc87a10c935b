"""The contenders of one run: the worker, other programs that do the same work, and clients that only fetch."""

import dataclasses

from . import endpoint, grants, measuring, paths, programs, system_calls

FLOOR = "C, same work (the floor)"
# The most that the worker should cost as a multiple of the floor.
FLOOR_GOAL = 1.5


@dataclasses.dataclass
class Contender:
    """One program over one HTTP version; `fraction` is its fraction of the requests, for slow ones."""
    name: str
    version: str
    command: callable
    fraction: float = 1
    does_the_work = False

    def run(self, site, count, folder):
        """One run against the endpoint: refreshes a second, processor seconds for a thousand, memory."""
        count = max(64, int(count * self.fraction))
        words, verify = self.prepare(site, count, folder)
        cost = self._run(words, site, folder)
        verify()
        answered, seconds = endpoint.span(site.issued)
        return {"per_second": answered / seconds, "cpu_per_1000": cost.cpu_seconds * 1000 / answered,
                "peak_megabytes": cost.peak_kilobytes / 1024}

    def count_system_calls(self, site, count, folder):
        """The system calls of one refresh, counted in a run of its own."""
        count = max(64, int(count * self.fraction))
        words, verify = self.prepare(site, count, folder)
        self._run(system_calls.counted(words, folder / "calls"), site, folder)
        verify()
        return system_calls.total(folder / "calls") / count

    def prepare(self, site, count, folder):
        """Returns the command, and a function that checks its work."""
        def verify():
            answered, _ = endpoint.span(site.issued)
            if answered != count:
                raise SystemExit(
                    f"{self.name} had to refresh {count} grants, but the endpoint answered {answered} times")

        return self.command(site, self.version, count), verify

    def _run(self, words, site, folder):
        site.start_log()
        cost = measuring.run(words, log=folder / "errors.log", output=folder / "output.log")
        site.flush_log()
        if cost.exit_code != 0:
            texts = [(folder / name).read_text() for name in ("output.log", "errors.log")]
            raise SystemExit(f"{self.name} failed: {''.join(texts)[-2000:]}")
        return cost


class Worker(Contender):
    """The worker on a database where all grants are due; every stored token is verified afterwards."""
    does_the_work = True

    def __init__(self, version, fraction=1, max_rate=None, bound=False):
        """`bound`: the refresh tokens are bound to a key."""
        super().__init__("refresh-worker", version, None, fraction)
        self.max_rate = max_rate
        self.bound = bound

    def prepare(self, site, count, folder):
        store = grants.Grants(folder / "grants")
        store.fill(count, outage=3600, bound=self.bound)
        words = [paths.WORKER, "--run-once", "--metrics-log", folder / "metrics.log",
                 *store.settings(site, self.version)]
        if self.max_rate is not None:
            words += ["--max-rate", self.max_rate]
        return words, lambda: store.verify_once_each(site.issued, count)


class SameWork(Contender):
    """Another program that does the worker's work, on a database of its own; verified in the same way."""
    does_the_work = True

    def prepare(self, site, count, folder):
        database, key = folder / "grants.sqlite", folder / "key"
        store = [programs.python(), paths.BENCHMARKS / "peers" / "same_work_store.py"]
        programs.call(*store, "fill", database, key, count)
        words = [*self.command, "--once", "--database", database, "--key", key, "--url", site.url(self.version),
                 "--ca-file", site.ca_file, "--version", self.version]

        def verify():
            verified = int(programs.call(*store, "verify", database, key, site.issued, folder / "output.log"))
            if verified != count:
                raise SystemExit(f"{self.name} had to refresh {count} grants, and refreshed {verified}")

        return words, verify


def h2load(site, version, count):
    """The limit of the endpoint: as many concurrent requests as the others."""
    body = paths.SCRATCH / "h2load.body"
    body.write_text(f"client_id=bench&grant_type=refresh_token&refresh_token=1%2F%2F0{0:010d}-{'x' * 88}")
    streams = ["-c1", "-m64"] if version == "h2" else ["--h1", "-c64", "-m1"]
    return ["h2load", *streams, "-n", count, "-d", body, "-H",
            "content-type: application/x-www-form-urlencoded", site.url(version)]


def the_floor():
    """The same work at the cost of the worker's libraries and little more."""
    return SameWork(FLOOR, "h2", [programs.build_c("floor")])


def x_oauth2(version):
    """Go's usual client, which only fetches."""
    program = programs.build_go("x_oauth2")

    def command(site, version, count):
        return [program, site.url(version), site.ca_file, count, version]

    return Contender("x/oauth2 (Go)", version, command)


def all_contenders():
    """All contenders, in the order of their turns."""
    same_work_go = programs.build_go("same_work")
    python, peers = programs.python(), paths.BENCHMARKS / "peers"

    def peer(script):
        return lambda site, version, count: [python, peers / script, site.url(version), site.ca_file, count]

    return [
        Worker("h2"), the_floor(), SameWork("Go, same work", "h2", [same_work_go]),
        x_oauth2("h2"), Contender("h2load", "h2", h2load),
        # A connection for each request: with more requests the ports would run out.
        Worker("h1", fraction=0.2), SameWork("Go, same work", "h1", [same_work_go]),
        x_oauth2("h1"), Contender("h2load", "h1", h2load),
        SameWork("Python, same work", "h1", [python, peers / "same_work.py"], fraction=0.1),
        Contender("google-auth (Python), threads", "h1", peer("google_auth_threads.py"), fraction=0.1),
        Contender("aiohttp (Python)", "h1", peer("aiohttp_tasks.py"), fraction=0.2),
        Contender("httpx (Python)", "h2", peer("httpx_tasks.py"), fraction=0.1),
    ]
