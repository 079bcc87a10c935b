"""Readiness and logs while tables are locked, while the server is away, and after rows or the tables were removed."""

import json
import subprocess
import time

from accounts import Accounts
from expectations import wait_for
from faults import Rounds

STORE = "postgres"

GRANTS = 20
ASKED = 20
LOST = "the database cannot be used"
BACK = "the database can be used again"


def scenario(fixture):
    accounts = Accounts(fixture)
    rounds = Rounds(fixture, GRANTS)
    wait_for(accounts.is_ready, 60, "it is ready")

    lock = TableLock(fixture.server)
    wait_for(lambda: database(accounts) == (503, "busy"), 60, "not ready while nothing can be stored: it is busy")
    locked = [readiness(accounts) for _ in range(ASKED)]
    assert all(status == 503 for status, _, _ in locked), "the worker is not ready while the lock is held"
    lock.release()
    wait_for(accounts.is_ready, 60, "it is ready when the lock is gone")

    fixture.server.stop("immediate")
    wait_for(lambda: readiness(accounts)[0] == 503, 60, "not ready while the server is away")
    away = [readiness(accounts) for _ in range(ASKED)]
    slowest = max(sorted(seconds for _, _, seconds in answers)[ASKED * 3 // 4] for answers in (locked, away))
    # A probe that waited for the database would take the three seconds of a check.
    assert slowest < 1, "three in four responses do not wait for the database"
    wait_for(lambda: accounts.worker.errors.read_text().count(LOST) >= 1, 60, "it says that the database is lost")
    fixture.server.start()
    wait_for(accounts.is_ready, 60, "it is ready when the server is back")
    log = accounts.worker.errors.read_text()
    assert "\t" not in log and "u{9}" not in log, "the log holds none of libpq's tabs"
    wait_for(lambda: accounts.worker.errors.read_text().count(BACK) >= 1, 60, "it says that the database is back")
    assert 'error="The database' in log, "a message begins in upper case"

    fixture.server.execute("DELETE FROM grant_schedule WHERE grant_id = (SELECT min(grant_id) FROM grant_schedule)")
    second = fixture.start("--max-rate", "10").wait_started()
    wait_for(lambda: second.events("alarm", kind="database_rows_lost"), 60, "an alarm about the removed row")
    second.stop()

    # The schema is dropped and created again by another worker: the first worker must not use the new tables.
    count_before = accounts.worker.errors.read_text().count(BACK)
    fixture.server.execute("DROP SCHEMA refresh_worker CASCADE")
    wait_for(lambda: accounts.worker.events("alarm", kind="database_tables_lost"), 60, "an alarm about the tables")
    newcomer = fixture.start("--max-rate", "10").wait_started()
    wait_for(lambda: "created again" in accounts.worker.errors.read_text(), 60, "it refuses the new tables")
    assert not accounts.is_ready(), "the worker is not ready with other tables"
    assert accounts.worker.errors.read_text().count(BACK) == count_before, (
        "the worker does not report that the database can be used again"
    )
    assert len(accounts.worker.events("alarm", kind="database_tables_lost")) == 1, "the new tables raise one alarm"
    newcomer.stop()
    accounts.worker.kill()
    accounts.close()
    return f"{rounds.rounds} rounds, readiness within {slowest * 1000:.0f} ms"


class TableLock:
    """A lock on all grants, like that of a careless migration."""

    def __init__(self, server):
        self.session = subprocess.Popen(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", server.url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.session.stdin.write("BEGIN; LOCK TABLE grants IN EXCLUSIVE MODE; SELECT 'held';\n")
        self.session.stdin.flush()
        while "held" not in (line := self.session.stdout.readline()):
            assert line, "psql locks the rows"

    def release(self):
        self.session.stdin.close()
        self.session.wait(timeout=60)


def database(accounts):
    status, body, _ = readiness(accounts)
    return status, body["checks"]["database"]


def readiness(accounts):
    began = time.monotonic()
    answer = accounts.internal.get("/readyz")
    return answer.status, json.loads(answer.body), time.monotonic() - began
