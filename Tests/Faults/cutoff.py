"""PostgreSQL: one of two workers is cut off from the token server, and the other one refreshes all grants.

The token server ends a grant when a spent token is used again. The cut loses no answer: at first only requests are held
back, until the answers on their way have come.
"""

from postgres import GRANTS, JOBS_FACTOR, template  # noqa: F401
from postgres_server import Server
from proxy import Proxy
from trial import Trial, pause
from verification import verify

LIFETIME = 20
# A request without an answer ends after 15 s, and its grant keeps its lease for 30 s more.
TAKEOVER_SECONDS = 90
# Through a silent network each probe keeps its grant for 45 s, and there is one every ten.
PROBED = 5


def silent(proxy):
    proxy.pass_only()


def refused(proxy):
    proxy.close()


def restore(proxy, port):
    """Ends the connections first: a request of which the worker has given up must not arrive."""
    if proxy.ended:
        return Proxy(port, proxy.port)
    proxy.reset()
    proxy.pass_only("requests", "answers")
    return proxy


def trial(part, seed, index, base, template):  # noqa: F811
    with Trial(part, seed, index, base, template, lifetime=LIFETIME) as one:
        one.google.ends_at_reuse = True
        server = Server(one.folder)
        proxy = Proxy(one.google.port)
        try:
            one.database = server.url
            way = f"http://127.0.0.1:{proxy.port}"
            cut = one.start("--token-endpoint", way + "/token", "--revocation-endpoint", way + "/revoke")
            healthy = one.start()
            for worker in (cut, healthy):
                worker.wait_for(
                    lambda w=worker: len(w.refreshed()) > GRANTS // 4, 4 * LIFETIME, "each refreshes its share"
                )
            pause(LIFETIME / 2 * one.chance.random())
            proxy.pass_only("answers")
            pause(1)
            way = [silent, refused][index % 2]
            way(proxy)
            one.note(way.__name__)
            before = len(healthy.refreshed())
            healthy.wait_for(
                lambda: len(set(healthy.refreshed()[before:])) >= GRANTS - PROBED, TAKEOVER_SECONDS,
                "the healthy worker refreshes all grants but those that the other one probes with",
            )
            proxy = restore(proxy, one.google.port)
            before = len(cut.refreshed())
            cut.wait_for(lambda: len(cut.refreshed()) > before + GRANTS // 4, 60, "the worker has its share back")
            for worker in (cut, healthy):
                assert worker.stop(60) == 0, f"the worker stops in order; it wrote: {worker.output()}"
            counts = {
                "asked twice": one.google.reuses,
                "ended": server.query(
                    "SELECT count(*) FROM refresh_worker.grant_events WHERE to_state NOT IN ('active', 'retrying')"
                )[0]["count"],
                "lost": sum(account.is_ended for account in one.google.accounts.values()),
            }
            assert not any(counts.values()), f"no grant is asked for twice, shown as ended, or lost: {counts}"
            counts = verify(one, complete=True)
        finally:
            for worker in one.workers:
                worker.end()
            proxy.close()
            server.stop()
        return {**counts, "cuts": 1}, one.notes
