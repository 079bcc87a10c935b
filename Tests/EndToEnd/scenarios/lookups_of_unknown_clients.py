"""Hundreds of unknown clients bring tokens while Google's lookups hang: lookups stay within their limit, no refresh
fails or waits for them, and the breaker stays closed."""

import selectors
import socket
import threading
import time

from accounts import Accounts
from expectations import wait_for

STRANGERS = 400
GRANTS = 20
# A sign-in needs two lookups; docs/app.md gives the limit.
MOST_LOOKUPS = 128


class SilentServer:
    """Accepts connections and never answers; counts the requests that were open at one time."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.open = set()
        self.most_open = 0
        self.ended = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ)
        while not self.ended:
            ready = [key.fileobj for key, _ in selector.select(0.1)]
            # Ended requests first: they must not be counted together with those that replace them.
            for connection in ready:
                if connection is not self.listener and not self.read(connection):
                    selector.unregister(connection)
                    self.open.discard(connection)
                    connection.close()
            self.most_open = max(self.most_open, len(self.open))
            if self.listener in ready:
                connection, _ = self.listener.accept()
                selector.register(connection, selectors.EVENT_READ)
                self.open.add(connection)

    @staticmethod
    def read(connection):
        try:
            return connection.recv(65536)
        except OSError:
            return b""

    def close(self):
        self.ended = True
        self.thread.join(10)
        for connection in [self.listener, *self.open]:
            connection.close()


def scenario(fixture):
    silent = SilentServer()
    ordinary = fixture.arguments
    fixture.arguments = lambda *extra: [
        silent.url if word.endswith(("/v1/userinfo", "/tokeninfo")) else word for word in ordinary(*extra)
    ]
    accounts = Accounts(fixture, "--trusted-proxy", "127.0.0.0/8")
    fixture.sandbox.settings(lifetime=45)
    ended = threading.Event()
    answers = []

    def stranger(number):
        while not ended.is_set():
            try:
                answer = accounts.public.post(
                    "/api/auth/mobile/google", {"access_token": f"fake-{number}"},
                    headers={"X-Forwarded-For": f"10.1.{number // 250}.{number % 250}"},
                )
                answers.append(answer.status)
            except OSError:
                ended.wait(0.1)

    threads = [threading.Thread(target=stranger, args=(number,), daemon=True) for number in range(STRANGERS)]
    for thread in threads:
        thread.start()
    wait_for(lambda: silent.most_open >= MOST_LOOKUPS, 60, "look-ups use their limit")
    wait_for(lambda: len(answers) >= STRANGERS, 60, "every stranger had an answer")
    fixture.import_grants(fixture.sandbox.create(GRANTS))
    moment = time.time() * 1000
    wait_for(
        lambda: all(row["access_expires_at"] > moment + 45_000 for row in fixture.rows()), 60,
        "every grant was refreshed",
    )
    ended.set()
    worker = accounts.worker
    assert not worker.events("breaker"), "the breaker stays closed"
    assert set(fixture.states()) == {"active"}, "every grant is active"
    refused = [event for event in worker.events("refresh") if event["outcome"] != "refreshed"]
    assert not refused, "every refresh succeeds"
    for thread in threads:
        thread.join(60)
    silent.close()
    assert silent.most_open <= MOST_LOOKUPS, "the look-ups stay within their limit"
    accounts.close()
    return (
        f"{len(answers)} sign-ins of strangers failed with {silent.most_open} look-ups at one time, "
        f"{GRANTS} grants were refreshed"
    )
