"""A thousand short-lived grants, some revoked, some errors and an outage, with and without cron."""

import random
import subprocess
import threading
import time

from expectations import wait_for
from integrity import damage
from observer import Observer

GRANTS = 1000
LIFETIME = 60
DURATION = 140
OUTAGE = 20
GRACE_AFTER_OUTAGE = 30


def mixed_faults(fixture, cron_every=None):
    chance = random.Random(1)
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=LIFETIME, error_rate=0.05)
    grants = sandbox.create(GRANTS)
    # Few enough that they are never a wave, however late the others are refreshed on a busy machine.
    revoked = chance.sample(grants, GRANTS // 100)
    revoked_emails = {grant["email"] for grant in revoked}
    fixture.generate_keys()
    fixture.import_grants(grants)
    worker = fixture.start("--summary-interval", "5").wait_started()
    cron = Cron(fixture, cron_every) if cron_every else None
    if cron:
        cron.start()
    observer = Observer(fixture, lambda user: user not in revoked_emails)
    observer.start()

    began = time.monotonic()
    schedule = [(chance.uniform(5, 110), grant) for grant in revoked]
    schedule.sort(key=lambda entry: entry[0])
    outage_from, outage_until = 55, 55 + OUTAGE
    was_down = False
    while (elapsed := time.monotonic() - began) < DURATION:
        while schedule and schedule[0][0] <= elapsed:
            sandbox.change(schedule.pop(0)[1], revoked=True)
        if not was_down and elapsed >= outage_from:
            sandbox.settings(outage="http503")
            was_down = True
            down_at = time.monotonic()
        if was_down and elapsed >= outage_until and "up_at" not in locals():
            sandbox.settings(outage="none")
            up_at = time.monotonic()
            unlucky_since = time.time()
        observer.ended.wait(0.2)
    assert not schedule, "every revocation is made"

    wait_for(
        lambda: fixture.states().get("disconnected") == len(revoked_emails), 90, "each revoked grant is disconnected"
    )
    expired = observer.stop()
    if cron:
        cron.stop()
    worker.stop()
    unlucky = thrice_unlucky(fixture, worker, unlucky_since)
    verify(fixture, revoked_emails, expired, down_at, up_at, unlucky)
    stats = sandbox.stats()
    runs = f", {cron.runs} cron runs" if cron else ""
    chance = f", thrice in a row unlucky: {len(unlucky)}" if unlucky else ""
    return f"{stats['by_route']['token']} calls, {len(revoked_emails)} revoked{runs}{chance}"


def thrice_unlucky(fixture, worker, since):
    """Users whose first three tries after the outage all met an error: no back-off promises them thirty seconds."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))
    outcomes = {}
    for event in worker.events("refresh"):
        if event["time"] > since:
            outcomes.setdefault(event["grant"], []).append(event["outcome"])
    unlucky = {grant for grant, tries in outcomes.items() if tries[:3] == ["retrying"] * 3}
    return {user for user, row in fixture.grants().items() if f"{row['id']:016x}" in unlucky}


def verify(fixture, revoked_emails, expired, down_at, up_at, unlucky):
    outside = [
        entry
        for entry in expired
        if not down_at <= entry[0] <= up_at + GRACE_AFTER_OUTAGE and not (entry[0] > up_at and entry[1] in unlucky)
    ]
    assert not outside, "every live grant has a valid token"
    rows = fixture.grants()
    for user, row in rows.items():
        if user in revoked_emails:
            assert (row["state"], row["reason"]) == ("disconnected", "invalid_grant"), (
                f"{user}'s revoked grant is disconnected"
            )
        else:
            assert row["state"] in ("active", "retrying"), f"{user}'s grant lives"
    endings = fixture.rows(
        "SELECT grant_id, count(*) AS n FROM grant_events WHERE to_state = 'disconnected' GROUP BY grant_id"
    )
    assert len(endings) == len(revoked_emails), "exactly the revoked grants are disconnected"
    assert all(row["n"] == 1 for row in endings), "each revoked grant is disconnected exactly once"

    stats = fixture.sandbox.stats()
    assert stats["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
    assert stats["unexpected_fields"] == 0, "only the fields of a public client are sent"
    # A grant is due between lifetime x (1 - 1/5 - 1/6) and lifetime x (1 - 1/5) after its last refresh.
    seconds = time.time() - fixture.rows("SELECT min(created_at) AS t FROM grants")[0]["t"] / 1000
    good = stats["by_answer"].get("ok", 0)
    most = len(rows) * (seconds / (LIFETIME * (1 - 1 / 5 - 1 / 6)) + 1)
    least = (len(rows) - len(revoked_emails)) * ((seconds - OUTAGE - 10) / (LIFETIME * 4 / 5) - 1)
    assert least <= good <= most, "the number of refreshes follows from the lifetime"
    refused = stats["by_answer"].get("invalid_grant", 0)
    assert refused <= 2 * len(revoked_emails), "a revoked grant is refused at most twice"
    assert damage(fixture) == {}, "the database is intact"


class Cron(threading.Thread):
    """Runs `--run-once` at a fixed pace in parallel with the daemon, as cron would."""

    def __init__(self, fixture, every):
        super().__init__(daemon=True)
        self.fixture = fixture
        self.every = every
        self.ended = threading.Event()
        self.runs = 0
        self.failure = None

    def run(self):
        try:
            while not self.ended.wait(self.every):
                result = self.fixture.run("--run-once", expect=None)
                assert result.returncode in (0, 75), f"--run-once exits with 0 or 75; it wrote: {result.stderr[-300:]}"
                self.runs += 1
        except (AssertionError, subprocess.SubprocessError) as error:
            self.failure = error

    def stop(self):
        self.ended.set()
        self.join()
        if self.failure:
            raise self.failure
        assert self.runs > 10, "cron runs often"
