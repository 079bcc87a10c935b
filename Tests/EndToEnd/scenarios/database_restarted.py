"""The database restarts, gently and at once, and stays away for twenty seconds: answers wait in memory and are stored
afterwards."""

import json
import time

from accounts import Accounts
from expectations import wait_for
from faults import Rounds

STORE = "postgres"

GRANTS = 40
AWAY = 20
LOST = "the database cannot be used"
BACK = "the database can be used again"


def scenario(fixture):
    accounts = Accounts(fixture)
    rounds = Rounds(fixture, GRANTS)
    restarts = (("fast", 0), ("immediate", 0), ("immediate", AWAY))
    for count, (mode, seconds) in enumerate(restarts, 1):
        rounds.begin(hold=True)
        rounds.wait_held()
        fixture.server.stop(mode)
        stopped = time.monotonic()
        # The database is away for every answer.
        rounds.release(rounds.emails)
        wait_for(lambda: database(accounts) == (503, "unreachable"), 60, "not ready: the database is unreachable")
        wait_for(lambda: count_of(accounts, LOST) == count, 60, "it says that the database is lost")
        wait_for(lambda: time.monotonic() >= stopped + seconds, AWAY + 5, "the database is away for a while")
        fixture.server.start()
        rounds.wait_stored(60, "the answers that waited in memory are stored")
        wait_for(lambda: count_of(accounts, BACK) == count, 60, "it says that the database is back")
        wait_for(accounts.is_ready, 60, "it is ready again")
    assert count_of(accounts, LOST) == count_of(accounts, BACK) == len(restarts), (
        "each loss and each return is reported once"
    )
    alarms = accounts.worker.events("alarm", kind="store_failing")
    assert len(alarms) == 1, "restarts within five minutes raise one alarm"
    wait_for(lambda: "store_failing" not in concerns(accounts), 60, "the alarm ends when the database is back")
    accounts.close()
    return f"{len(restarts)} restarts; {rounds.verify()}"


def readiness(accounts):
    answer = accounts.internal.get("/readyz")
    return answer.status, json.loads(answer.body)


def database(accounts):
    status, body = readiness(accounts)
    return status, body["checks"]["database"]


def concerns(accounts):
    return [concern["kind"] for concern in readiness(accounts)[1]["concerns"]]


def count_of(accounts, words):
    return accounts.worker.errors.read_text().count(words)
