"""Two workers on one database, their clocks an hour before and an hour behind it: no grant is refreshed early, late or
twice."""

from expectations import wait_for
from faults import DATABASE_NOW, wait_until_all_reported, wrong_clock

STORE = "postgres"

GRANTS = 120
LIFETIME = 30
# The worker replaces a token at this time before its end at the latest (DuePolicy.swift).
MARGIN = LIFETIME / 5


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=LIFETIME, rotation=True)
    fixture.generate_keys()
    grants = sandbox.create(GRANTS)
    fixture.import_grants(grants)
    library = wrong_clock(fixture)
    workers = []
    for seconds, words in ((-3600, "ahead of this machine's"), (3600, "behind this machine's")):
        wrong = {"LD_PRELOAD": library, "CLOCK_WRONG_BY": str(seconds)}
        output = fixture.run(
            "doctor", expect=None, prefix=("env", *(f"{name}={value}" for name, value in wrong.items()))
        ).stdout
        assert words in output, "the worker's clock is wrong"
        workers.append(fixture.start(environment=wrong).wait_started())
    wait_until_all_reported(fixture, 2)
    wait_for(
        lambda: all(row["last_success_at"] for row in read_grants(fixture).values()), 60,
        "every grant was refreshed once",
    )
    monitor = Monitor(fixture)
    wait_for(monitor.poll, 4 * LIFETIME, "every grant was refreshed again", pause=0.2)
    for worker in workers:
        assert worker.events("refresh", outcome="refreshed"), "each worker refreshes its share"
        worker.stop()
    assert not monitor.early, "no refresh comes early (milliseconds)"
    assert not monitor.late, "no refresh comes late (milliseconds)"
    return verify(fixture, workers, monitor.refreshes)


class Monitor:
    """Compares the grants with the last poll, which holds the due time that a refresh was made for."""

    def __init__(self, fixture):
        self.fixture = fixture
        self.known = read_grants(fixture)
        self.refreshed = set()
        self.refreshes = 0
        self.early, self.late = [], []

    def poll(self):
        """Returns `True` once every grant was refreshed since the first poll."""
        present = read_grants(self.fixture)
        for user, row in present.items():
            if row["last_success_at"] != self.known[user]["last_success_at"]:
                self.verify(user, self.known[user], row)
        self.known = present
        now = int(self.fixture.server.execute(DATABASE_NOW))
        dead = [user for user, row in present.items() if row["access_expires_at"] <= now]
        assert not dead, "every grant has a valid token"
        return len(self.refreshed) == GRANTS

    def verify(self, user, former, row):
        self.refreshes += 1
        self.refreshed.add(user)
        after = row["last_success_at"] - former["due_at"]
        if after < 0:
            self.early.append((user, after))
        if after > MARGIN * 1000:
            self.late.append((user, after))
        lives = row["access_expires_at"] - row["last_success_at"]
        assert abs(lives - LIFETIME * 1000) < 5_000, (
            f"{user}'s token is stored with its lifetime of {LIFETIME} s (in milliseconds)"
        )
        assert row["last_success_at"] < row["due_at"] < row["access_expires_at"], (
            f"{user}'s grant is due after its refresh and before its token expires"
        )


def read_grants(fixture):
    columns = "user_id, last_success_at, access_expires_at, due_at"
    rows = fixture.rows(f"SELECT {columns} FROM grants JOIN grant_schedule ON grant_id = id")
    return {row["user_id"]: row for row in rows}


def verify(fixture, workers, seen):
    stats = fixture.sandbox.stats(grants=True)
    done = sum(len(worker.events("refresh", outcome="refreshed")) for worker in workers)
    called = sum(grant["requests"] for grant in stats["grants"])
    assert called == done, "the workers report as many refreshes as the sandbox answered"
    assert stats["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
    assert fixture.states() == {"active": GRANTS}, "every grant is active"
    assert not any(worker.events("clock_step") for worker in workers), (
        "a constantly wrong clock is not reported as a step"
    )
    return f"{done} refreshes, {seen} of them seen"
