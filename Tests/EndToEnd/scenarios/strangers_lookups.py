"""Hundreds of strangers bring tokens while Google's look-ups hang: no refresh waits for them, and the breaker stays closed."""

import socket
import threading
import time

from accounts import Accounts
from harness import check, wait_for

STRANGERS = 400
GRANTS = 20


def scenario(place):
    # Connections are accepted by the kernel, and nothing ever answers.
    silent = socket.create_server(("127.0.0.1", 0), backlog=4096)
    silent_url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
    ordinary = place.arguments
    place.arguments = lambda *extra: [
        silent_url if word.endswith(("/v1/userinfo", "/tokeninfo")) else word for word in ordinary(*extra)
    ]
    accounts = Accounts(place, "--trusted-proxy", "127.0.0.0/8")
    place.sandbox.settings(lifetime=45)
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
    wait_for(lambda: len(answers) >= STRANGERS, 60, "every stranger had an answer")
    place.bring_in(place.sandbox.create(GRANTS))
    moment = time.time() * 1000
    wait_for(
        lambda: all(row["access_expires_at"] > moment + 45_000 for row in place.rows()), 60, "every grant was refreshed"
    )
    ended.set()
    worker = accounts.worker
    check(not worker.events("breaker"), f"the breaker moved: {worker.events('breaker')}")
    check(set(place.states()) == {"active"}, f"states: {place.states()}")
    refused = [event for event in worker.events("refresh") if event["outcome"] != "refreshed"]
    check(not refused, f"{len(refused)} refreshes failed: {refused[:3]}")
    for thread in threads:
        thread.join(60)
    silent.close()
    accounts.close()
    return f"{len(answers)} look-ups of strangers failed, {GRANTS} grants were refreshed"
