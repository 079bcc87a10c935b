"""A watch over the database while a scenario runs."""

import threading
import time


class Observer(threading.Thread):
    """Polls the database and records each time at which a grant that should be valid was not."""

    def __init__(self, place, is_expected):
        super().__init__(daemon=True)
        self.place = place
        self.is_expected = is_expected
        self.expired = []  # (monotonic time, user, state, seconds past expiry)
        self.looks = 0
        self.ended = threading.Event()
        self.trouble = None

    def run(self):
        try:
            while not self.ended.wait(0.5):
                self.look()
        except Exception as error:  # reported by stop()
            self.trouble = error

    def look(self):
        now = time.time() * 1000
        rows = self.place.rows("SELECT user_id, state, access_expires_at FROM grants")
        moment = time.monotonic()
        self.looks += 1
        for row in rows:
            if self.is_expected(row["user_id"]) and (row["access_expires_at"] or 0) <= now:
                self.expired.append(
                    (moment, row["user_id"], row["state"], (now - (row["access_expires_at"] or 0)) / 1000)
                )

    def stop(self):
        self.ended.set()
        self.join()
        if self.trouble:
            raise self.trouble
        assert self.looks > 3, "the observer polls the database often"
        return self.expired
