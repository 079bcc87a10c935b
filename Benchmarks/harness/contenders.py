"""The contenders of one run: the worker, and clients that only fetch."""

import dataclasses

from . import endpoint, grants, measuring, paths, programs


@dataclasses.dataclass
class Contender:
    """One program over one HTTP version; `fraction` is its fraction of the requests, for slow ones."""
    name: str
    version: str
    command: callable
    fraction: float = 1

    def run(self, site, count, folder):
        """One run against the endpoint: refreshes a second, processor seconds for a thousand, memory."""
        count = max(64, int(count * self.fraction))
        site.start_log()
        cost = measuring.run(self.command(site, self.version, count), log=folder / "errors.log")
        site.flush_log()
        if cost.exit_code != 0:
            raise SystemExit(f"{self.name} failed: {cost.output}{(folder / 'errors.log').read_text()}")
        return figures(site, count, cost, self.name)


class Worker(Contender):
    """The worker on a database where all grants are due; every stored token is verified afterwards."""

    def __init__(self, version):
        super().__init__("refresh-worker", version, None)

    def run(self, site, count, folder):
        store = grants.Grants(folder / "grants")
        store.fill(count, outage=3600)
        site.start_log()
        command = [paths.WORKER, "--run-once", "--metrics-log", folder / "metrics.log",
                   *store.settings(site, self.version)]
        cost = measuring.run(command, log=folder / "errors.log")
        site.flush_log()
        if cost.exit_code != 0:
            raise SystemExit(f"{self.name} failed: {cost.output}{(folder / 'errors.log').read_text()}")
        store.verify_once_each(site.issued, count)
        return figures(site, count, cost, self.name)


def figures(site, count, cost, name):
    answered, seconds = endpoint.span(site.issued)
    if answered != count:
        raise SystemExit(f"{name} had to refresh {count} grants, but the endpoint answered {answered} times")
    return {"per_second": count / seconds, "cpu_per_1000": cost.cpu_seconds * 1000 / count,
            "peak_megabytes": cost.peak_kilobytes / 1024}


def h2load(site, version, count):
    """The limit of the endpoint: as many concurrent requests as the others."""
    body = paths.SCRATCH / "h2load.body"
    body.write_text(f"client_id=bench&grant_type=refresh_token&refresh_token=1%2F%2F0{0:010d}-{'x' * 88}")
    streams = ["-c1", "-m64"] if version == "h2" else ["--h1", "-c64", "-m1"]
    return ["h2load", *streams, "-n", count, "-d", body, "-H",
            "content-type: application/x-www-form-urlencoded", site.url(version)]


def all_contenders():
    """All contenders, in the order of their turns."""
    go = programs.build_go("x_oauth2")
    python = programs.python()

    def peer(script):
        return lambda site, version, count: [
            python, paths.BENCHMARKS / "peers" / script, site.url(version), site.ca_file, count]

    def oauth2(site, version, count):
        return [go, site.url(version), site.ca_file, count, version]

    return [
        Worker("h2"), Contender("x/oauth2 (Go)", "h2", oauth2), Contender("h2load", "h2", h2load),
        Worker("h1"), Contender("x/oauth2 (Go)", "h1", oauth2), Contender("h2load", "h1", h2load),
        Contender("google-auth (Python), threads", "h1", peer("google_auth_threads.py"), fraction=0.1),
        Contender("aiohttp (Python)", "h1", peer("aiohttp_tasks.py"), fraction=0.2),
        Contender("httpx (Python)", "h2", peer("httpx_tasks.py"), fraction=0.1),
    ]
