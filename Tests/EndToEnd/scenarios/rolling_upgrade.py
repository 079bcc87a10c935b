"""Two workers on one database are replaced one after the other by a version with a newer schema: a service that asks
them for tokens all the time gets each one, and no refresh is lost. A step that an older version could not use waits
until all of them have stopped.

The newer version is the debug build with steps that only it takes. `FORMER_WORKER=FILE` runs another program as the
older one, such as that of the commit before.
"""

import os
import threading

from accounts import SERVICE_KEY, Accounts, Listener
from expectations import wait_for
from faults import Rounds, wait_until_all_reported
from harness import NEXT_WORKER, WORKER, Skipped, in_place_of_worker

STORE = "postgres"

GRANTS = 40
ADDITIVE = {"NEXT_SCHEMA_STEPS": "additive"}
BREAKING = {"NEXT_SCHEMA_STEPS": "additive,breaking"}


class Service:
    """Asks for one token after another, at each worker in turn, and at the other one if it cannot connect."""

    def __init__(self, users, sockets):
        self.users, self.listeners = users, [Listener(socket) for socket in sockets]
        self.statuses, self.unanswered = {}, 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        turn = 0
        while not self.ends.is_set():
            turn += 1
            status = self.ask(turn)
            self.statuses[status] = self.statuses.get(status, 0) + 1

    def ask(self, turn):
        path = f"/v1/grants/{self.users[turn % len(self.users)]}/token?min_ttl=60"
        for listener in (self.listeners[turn % 2], self.listeners[1 - turn % 2]):
            try:
                return listener.get(path, SERVICE_KEY).status
            except OSError:
                self.unanswered += 1
        return "no worker"

    def end(self):
        self.ends.set()
        self.thread.join(60)
        assert set(self.statuses) == {200}, f"each request gets its token: {self.statuses}"
        return self.statuses[200]


def scenario(fixture):
    if not NEXT_WORKER.exists():
        raise Skipped("the next version is missing: run `make build`, or name a debug build as NEXT_WORKER")
    accounts = Accounts(fixture, start=False)
    older = in_place_of_worker(os.environ.get("FORMER_WORKER", WORKER))
    newer = in_place_of_worker(NEXT_WORKER)
    sockets = [fixture.folder / f"{name}.sock" for name in "ab"]
    rounds = Rounds(fixture, GRANTS)

    def start(socket, environment=None):
        extra = ["--listen-internal", f"unix:{socket}", "--services-file", fixture.folder / "services.json"]
        worker = fixture.start(*extra, prefix=newer if environment else older, environment=environment).wait_started()
        wait_for(Listener(socket).is_ready, 60, "the worker is ready")
        return worker

    def refresh_all():
        rounds.begin()
        rounds.wait_stored(30, "every grant is refreshed")

    def schema():
        return fixture.rows("SELECT version FROM schema_version")[0]["version"]

    first, second = (start(socket) for socket in sockets)
    wait_until_all_reported(fixture, 2)
    refresh_all()
    version = schema()
    service = Service(rounds.emails, sockets)

    first.stop()
    first = start(sockets[0], ADDITIVE)
    assert schema() == version + 1, "the newer worker has changed the schema under the older one"
    wait_until_all_reported(fixture, 2)
    refresh_all()
    second.kill()
    second = start(sockets[1])
    refresh_all()
    second.stop()
    second = start(sockets[1], ADDITIVE)
    refresh_all()
    summary = rounds.verify()

    # A breaking step: the newest worker waits, while those before it work.
    newest = fixture.start(prefix=newer, environment=BREAKING)
    wait_for(lambda: "Stop every worker" in newest.errors.read_text(), 60, "it says what it waits for")
    refresh_all()
    answered = service.end()
    first.stop()
    assert not newest.events("started"), "it waits for the last one"
    second.stop()
    newest.wait_started()
    assert schema() == version + 2, "it changes the schema when it is alone"
    refused = fixture.start(prefix=older)
    assert refused.process.wait(timeout=60) == 78, "an older version does not start on it"
    assert "Upgrade refresh-worker" in refused.errors.read_text(), "it says what to do"
    refresh_all()
    assert fixture.states() == {"active": GRANTS}, "every grant is active"
    newest.stop()
    accounts.backend.shutdown()
    return f"{answered} tokens, {service.unanswered} asked again elsewhere; {summary}"
