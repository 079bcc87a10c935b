"""PostgreSQL: a copy of the database, promoted beside it, and a second worker on the copy.

The token server ends a grant when a spent token is used again, so each request of the second worker costs a user. It
cannot know that its database is a copy. But it can notice that its first grants are all refused, and hold the others.
"""

from postgres import GRANTS, JOBS_FACTOR, template  # noqa: F401
from postgres_server import Server
from trial import Trial, command

MAXIMUM_ASKED = 10


def trial(part, seed, index, base, template):  # noqa: F811
    with Trial(part, seed, index, base, template, lifetime=4) as one:
        one.google.ends_at_reuse = True
        server = Server(one.folder)
        try:
            one.database = server.url
            first = one.start()
            first.wait_for(lambda: first.text().count('"refreshed"') > 2 * GRANTS, 60, "grants are refreshed")
            copy = server.standby()
            copy.promote()
            target = one.google.requests + 2 * GRANTS
            first.wait_for(lambda: one.google.requests > target, 60, "the copy's tokens are spent")
            one.database = copy.url
            second = one.start()
            second.wait_for(lambda: second.text().count('"invalid_grant"') >= MAXIMUM_ASKED, 30, "grants are refused")
            target = one.google.requests + 2 * GRANTS
            first.wait_for(lambda: one.google.requests > target, 60, "the first worker goes on")
            asked = one.google.reuses
            lost = sum(account.is_ended for account in one.google.accounts.values())
            assert asked <= MAXIMUM_ASKED, f"the second worker stops after {MAXIMUM_ASKED} grants; {lost} are lost"
            second.wait_for(lambda: '"database_copy_suspected"' in second.text(), 10, "the alarm says so")
            status = command(one.arguments("status"), expect=None)
            assert status.returncode in (3, 4) and "database_copy_suspected" in status.stdout, "the status says so"
            assert second.stop(60) == 0, f"the second worker stops in order; it wrote: {second.output()}"
            one.database = server.url
            assert first.stop(60) == 0, f"the first worker stops in order; it wrote: {first.output()}"
        finally:
            for worker in one.workers:
                worker.end()
            for each in (*server.standbys, server):
                each.stop()
        return {"grants asked for by the second worker": asked, "grants": GRANTS, "trials": 1}, one.notes
