"""PostgreSQL: a server that is away for longer than a lease, while two workers hold answers in memory.

The token server ends a grant when a spent token is used again. So no worker may ask for a grant whose answer the other
one still holds.
"""

from postgres import GRANTS, JOBS_FACTOR, Pair, template  # noqa: F401
from trial import Trial, pause
from verification import verify

OUTAGE_SECONDS = 45


def stopped(pair):
    pair.server.stop()
    pause(OUTAGE_SECONDS)
    pair.server.start()


def cut(pair):
    pair.proxy.pass_only()
    pause(OUTAGE_SECONDS)
    pair.proxy.pass_only("requests", "answers")


def read_only(pair):
    """Managed services make a server read-only when its disk is full: it still answers reads."""
    for value in ("on", "off"):
        pair.server.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        pair.server.execute("SELECT pg_reload_conf()")
        if value == "on":
            pause(OUTAGE_SECONDS)


def trial(part, seed, index, base, template):  # noqa: F811
    with Trial(part, seed, index, base, template, lifetime=6, latency=2) as one:
        one.google.ends_at_reuse = True
        pair = Pair(one, proxied=2)
        try:
            for worker in pair.workers:
                worker.wait_for(lambda w=worker: w.text().count('"refreshed"') > GRANTS, 60, "grants are refreshed")
            pause(one.chance.random())
            ways = {"the server is stopped": stopped, "nothing passes": cut, "the server is read-only": read_only}
            way = list(ways)[index % len(ways)]
            ways[way](pair)
            one.note(way)
            pair.recover()
            counts = {
                "asked twice": one.google.reuses,
                "disconnected": pair.server.query(
                    "SELECT count(*) FROM refresh_worker.grant_events WHERE to_state = 'disconnected'"
                )[0]["count"],
                "lost": sum(account.is_ended for account in one.google.accounts.values()),
            }
            assert not any(counts.values()), f"no grant is asked for twice, shown as disconnected, or lost: {counts}"
            counts = verify(one, complete=True)
        finally:
            pair.close()
        return {**counts, "outages": 1}, one.notes
