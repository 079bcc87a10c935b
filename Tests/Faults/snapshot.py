"""PostgreSQL: kills of two workers under load, while one session holds an old snapshot and another one commits late.

VACUUM then removes no row that died since, so every read steps over the dead ones.
"""

import subprocess

from postgres import EVENTS, JOBS_FACTOR, Pair, kill_worker, kill_worker_at_call, template  # noqa: F401
from trial import Trial, pause
from verification import verify

COUNT = "SELECT sum(generation) FROM refresh_worker.grants"


class OpenSession:
    """A session of psql that stays in a transaction."""

    def __init__(self, server, *statements):
        self.session = subprocess.Popen(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", server.url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for statement in statements:
            self.answer(statement)

    def answer(self, statement):
        """Runs a statement that returns one row, and returns that."""
        self.session.stdin.write(statement + ";\n")
        self.session.stdin.flush()
        line = self.session.stdout.readline()
        assert line, f"psql answers {statement}"
        return line.strip()

    def close(self):
        self.session.stdin.close()
        self.session.wait(60)


def trial(part, seed, index, base, template):  # noqa: F811
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        pair = Pair(one)
        sessions = []
        try:
            old = OpenSession(pair.server, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
            sessions.append(old)
            seen = old.answer(COUNT)
            late = OpenSession(pair.server, "BEGIN; CREATE TABLE public.late (x int); SELECT txid_current()")
            sessions.append(late)
            commit = one.chance.randrange(EVENTS)
            for event in range(EVENTS):
                pause(2 + 2 * one.chance.random())
                kill = one.chance.choice([kill_worker, kill_worker_at_call])
                kill(pair, one.chance)
                one.note(kill.__name__)
                pair.server.execute("VACUUM refresh_worker.grants, refresh_worker.grant_schedule")
                if event == commit:
                    late.answer("COMMIT; SELECT 1")
                    one.note("the late session commits")
                pause(one.chance.random())
                pair.revive()
            pair.recover()
            assert old.answer(COUNT) == seen, "the old snapshot was held to the end"
            dead = pair.server.query(
                "SELECT n_dead_tup AS count FROM pg_stat_user_tables WHERE relname = 'grant_schedule'"
            )[0]["count"]
            counts = verify(one)
        finally:
            for session in sessions:
                session.close()
            pair.close()
        return {**counts, "dead rows": dead, "kills": EVENTS}, one.notes
