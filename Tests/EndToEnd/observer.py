"""Monitors the database while a scenario runs."""

import threading
import time


class Observer(threading.Thread):
    """Polls the database and records each time at which a grant that should be valid was not."""

    def __init__(self, fixture, is_expected):
        super().__init__(daemon=True)
        self.fixture = fixture
        self.is_expected = is_expected
        self.expired = []  # (monotonic time, user, state, seconds past expiry)
        self.polls = 0
        self.ended = threading.Event()
        self.failure = None

    def run(self):
        try:
            while not self.ended.wait(0.5):
                self.poll()
        except Exception as error:  # raised by stop()
            self.failure = error

    def poll(self):
        now = time.time() * 1000
        rows = self.fixture.rows("SELECT user_id, state, access_expires_at FROM grants")
        moment = time.monotonic()
        self.polls += 1
        for row in rows:
            if self.is_expected(row["user_id"]) and (row["access_expires_at"] or 0) <= now:
                self.expired.append(
                    (moment, row["user_id"], row["state"], (now - (row["access_expires_at"] or 0)) / 1000)
                )

    def stop(self):
        self.ended.set()
        self.join()
        if self.failure:
            raise self.failure
        assert self.polls > 3, "the observer polls the database often"
        return self.expired
