"""The network between worker and database fails: it drops answers, then everything, and then resets the connections."""

from accounts import Accounts
from expectations import wait_for
from faults import STORE_TIMEOUT, Rounds, named
from proxy import Proxy

STORE = "postgres"

GRANTS = 40
LOST = "the database cannot be used"
BACK = "the database can be used again"


def scenario(fixture):
    proxy = Proxy(fixture.server.folder / ".s.PGSQL.5432")
    rounds = Rounds(fixture, GRANTS)
    direct = fixture.database
    fixture.database = named(f"postgres://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable", "behind-the-proxy")
    accounts = Accounts(fixture)
    fixture.database = direct

    # The worker's requests arrive, but no answers come back: it cannot know which commits succeeded.
    rounds.begin(hold=True)
    rounds.wait_held()
    proxy.pass_only("requests")
    rounds.release(rounds.emails)
    wait_for(lambda: count_of(accounts, LOST) == 1, 2 * STORE_TIMEOUT + 10, "it notices that no answers arrive")
    assert not is_ready(accounts), "the worker is not ready"
    proxy.pass_only("requests", "answers")
    rounds.wait_stored(40, "all answers are stored")
    wait_for(lambda: count_of(accounts, BACK) == 1, 60, "it says that the database is back")

    # Nothing gets through at all; after the repair, the old connections are gone.
    rounds.begin(hold=True)
    rounds.wait_held()
    proxy.pass_only()
    rounds.release(rounds.emails)
    wait_for(lambda: count_of(accounts, LOST) == 2, 2 * STORE_TIMEOUT + 10, "it notices that nothing gets through")
    opened = connections(fixture)
    assert opened <= 10, "the server is left with at most ten connections"
    proxy.reset()
    proxy.pass_only("requests", "answers")
    rounds.wait_stored(40, "all answers are stored")
    wait_for(lambda: count_of(accounts, BACK) == 2, 60, "it says that the database is back")

    # Resets during work are recovered from before they are reported.
    rounds.begin(hold=True)
    rounds.wait_held()
    proxy.reset()
    rounds.release(rounds.emails)
    rounds.wait_stored(20, "all answers are stored")
    wait_for(lambda: is_ready(accounts), 60, "it is ready")
    accounts.close()
    proxy.close()
    return f"{rounds.verify()}"


def is_ready(accounts):
    return accounts.internal.get("/readyz").status == 200


def count_of(accounts, words):
    return accounts.worker.errors.read_text().count(words)


def connections(fixture):
    sessions = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'behind-the-proxy'"
    return fixture.server.query(sessions)[0]["n"]
