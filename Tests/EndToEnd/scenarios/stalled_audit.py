"""A reader of the metrics log that stalls: after a second no token is vended, and a stop says what is lost."""

import json
import os
import re
import threading

from accounts import Accounts, user_token
from expectations import wait_for
from harness import Worker


class Reader:
    """The end of a named pipe, which reads only while it is told to."""

    def __init__(self, path):
        os.mkfifo(path)
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.text = b""
        self.reads = threading.Event()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while not self.ends.is_set():
            self.reads.wait()
            try:
                self.text += os.read(self.descriptor, 65_536)
            except BlockingIOError:
                self.ends.wait(0.01)

    def close(self):
        self.ends.set()
        self.reads.set()
        self.thread.join(60)
        os.close(self.descriptor)

    def events(self, name):
        """The events in whole lines that have arrived."""
        lines = self.text.split(b"\n")[:-1]
        return [event for event in map(json.loads, lines) if event["event"] == name]


def vend_until_refused(accounts):
    """The number of tokens vended before the first refusal."""
    count = 0
    while (answer := accounts.vend("ada")).status == 200:
        count += 1
    assert answer.status == 503 and answer.json["error"] == "audit_unavailable", "a token needs its line in the audit"
    return count


def scenario(fixture):
    accounts = Accounts(fixture, start=False)
    # The file of the worker that starts next.
    reader = Reader(fixture.folder / f"metrics-{Worker.count + 1}.jsonl")
    worker = accounts.worker = fixture.start(*accounts.extra)
    wait_for(accounts.is_ready, 60, "the listeners answer")
    accounts.connect(fixture.sandbox.create(email="ada@gmail.com")[0], user_token("ada")).expect(201)

    vended = vend_until_refused(accounts)
    reader.reads.set()
    wait_for(lambda: accounts.vend("ada").status == 200, 30, "tokens are vended again once the log is read")
    wait_for(lambda: len(reader.events("vend")) > vended, 30, "the line of each vended token arrives")

    reader.reads.clear()
    lines = len(reader.events("vend"))
    vended = vend_until_refused(accounts)
    worker.stop()
    reported = re.search(r"error lines were lost since the start lost=(\d+)", worker.errors.read_text())
    assert reported, f"the worker logs how many lines are lost; it wrote: {worker.errors.read_text()[-500:]}"
    lost = int(reported[1])
    reader.reads.set()
    wait_for(lambda: len(reader.events("vend")) - lines + lost >= vended, 30, "each vended token has a line or is lost")
    reader.close()
    return f"{vended} tokens vended before the refusal, {lost} lines lost"
