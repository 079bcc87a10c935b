"""Hostile clients at the public listener: idle, slow, huge and broken requests, while the worker refreshes on time."""

import random
import resource
import socket
import threading
import time

from accounts import Accounts, user_token
from expectations import wait_for
from observer import Observer

IDLE = 10_000


def scenario(fixture):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert hard > IDLE + 1000, "enough open files are allowed here"
    accounts = Accounts(fixture, "--trusted-proxy", "127.0.0.0/8")
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=45)
    grants = sandbox.create(100)
    fixture.import_grants(grants)
    observer = Observer(fixture, lambda user: True)
    observer.start()
    chance = random.Random(7)
    ended = threading.Event()

    def connect():
        return socket.create_connection(("127.0.0.1", accounts.port), timeout=30)

    # Ten thousand silent connections, from many addresses of this machine.
    idle = []
    for number in range(IDLE):
        client = socket.socket()
        client.bind((f"127.0.{1 + number // 250}.{1 + number % 250}", 0))
        client.connect(("127.0.0.1", accounts.port))
        idle.append(client)

    def slowly():
        while not ended.is_set():
            client = connect()
            try:
                for byte in b"POST /v1/connections/google HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{":
                    client.send(bytes([byte]))
                    if ended.wait(0.2):
                        break
            except OSError:
                pass
            client.close()

    broken = [
        b"\x00\xff" * 400,
        b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET " + b"/x" * 50_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /v1/connections/google HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"POST /api/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /api/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/auth/refresh HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"POST /api/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 200,
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ]

    def brokenly():
        while not ended.is_set():
            client = connect()
            data = bytearray(chance.choice(broken))
            for _ in range(chance.randrange(4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                client.sendall(bytes(data))
                if chance.random() < 0.5:
                    client.shutdown(socket.SHUT_WR)
                client.settimeout(0.5)
                client.recv(65_536)
            except OSError:
                pass
            client.close()

    threads = [threading.Thread(target=work, daemon=True) for work in [slowly] * 20 + [brokenly] * 4]
    for thread in threads:
        thread.start()
    # At the same time, an honest user calls through the proxy.
    bearer = user_token("honest")
    slowest = 0.0
    deadline = time.monotonic() + 60
    asked = 0
    while time.monotonic() < deadline:
        began = time.monotonic()
        accounts.public.get("/v1/user/me", bearer).expect(200)
        slowest = max(slowest, time.monotonic() - began)
        asked += 1
    ended.set()
    for thread in threads:
        thread.join(60)
    late = observer.stop()
    assert not late, "no token expires"
    refreshed = len(accounts.worker.events("refresh", outcome="refreshed"))
    assert refreshed >= 100, "the worker refreshes during the attack"
    assert sandbox.stats()["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
    for client in idle:
        client.close()
    wait_for(accounts.is_ready, 60, "still answers")
    accounts.close()
    return f"{IDLE} idle connections, {asked} honest requests, the slowest {slowest:.2f} s, {refreshed} refreshes"
