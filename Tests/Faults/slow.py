"""Clients that send a byte of a request now and then, at both listeners and over TLS, while the worker refreshes."""

import contextlib
import hashlib
import json
import random
import socket
import ssl
import subprocess
import threading
import time

from ports import free_port
from trial import Template, Trial
from verification import check_integrity, verify

GRANTS = 200
CLIENTS = 40  # at each listener
REQUEST_SECONDS = 30  # from the first byte of a request to the end of its body
SLACK = 5  # the server looks once a second, on a machine that is busy

HEAD = b"POST /oauth2/token HTTP/1.1\r\nHost: localhost\r\n"
BODIES = [(b"Content-Length: 60000\r\n\r\n", b"a"), (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n")]


def template(base):
    certificate = base / "listener.pem"
    if not certificate.exists():
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=localhost", "-keyout", base / "listener.key", "-out", certificate],
            check=True, capture_output=True,
        )
        (base / "listener.key").chmod(0o600)
    return Template(base, GRANTS)


def secret(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return path


class Listeners:
    """The worker's flags for its listeners, and connections to each of them."""

    def __init__(self, folder, base):
        self.public, self.internal = free_port(), free_port()
        self.socket = folder / "internal.sock"
        service = {"name": "mailer", "credential_sha256": hashlib.sha256(b"m" * 32).hexdigest(), "scopes": ["*"],
                   "users": ["*"]}
        self.flags = [
            "--listen", f"127.0.0.1:{self.public}", "--jwt-secret-file", secret(folder / "jwt", "s" * 40),
            "--listen-internal", f"127.0.0.1:{self.internal}", "--listen-internal", f"unix:{self.socket}",
            "--internal-certificate", base / "listener.pem", "--internal-key", base / "listener.key",
            "--services-file", secret(folder / "services.json", json.dumps({"services": [service]})),
        ]

    def connect_public(self):
        return socket.create_connection(("127.0.0.1", self.public), 30)

    def connect_internal(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.internal), 30))

    def connect_socket(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(30)
        client.connect(str(self.socket))
        return client

    def all(self):
        return {"public": self.connect_public, "internal over TLS": self.connect_internal,
                "unix socket": self.connect_socket}


class SlowClient(threading.Thread):
    """Sends a head, then a piece of its body after each pause, and notes for how long the server listened."""

    def __init__(self, connect, chance):
        super().__init__(daemon=True)
        self.connect = connect
        self.framing, self.piece = chance.choice(BODIES)
        self.pause = chance.uniform(0.5, REQUEST_SECONDS - 1)
        self.seconds = None
        self.problem = None

    def run(self):
        try:
            with self.connect() as client:
                began = time.monotonic()
                client.sendall(HEAD + self.framing)
                while not self.has_ended(client) and time.monotonic() - began < 3 * REQUEST_SECONDS:
                    with contextlib.suppress(OSError):
                        client.sendall(self.piece)
                self.seconds = time.monotonic() - began
        except OSError as error:
            self.problem = error

    def has_ended(self, client):
        """Waits for the pause between two pieces, and returns `True` if the server ends the connection meanwhile."""
        client.settimeout(self.pause)
        try:
            client.recv(4096)
        except TimeoutError:
            return False
        except OSError:
            pass
        return True


def is_healthy(connect):
    with connect() as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return client.recv(4096).startswith(b"HTTP/1.1 200 ")


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        listeners = Listeners(one.folder, base)
        worker = one.start(*listeners.flags)
        worker.wait_for(lambda: '"started"' in worker.text(), 30, "the worker starts")
        clients = [SlowClient(connect, random.Random(one.chance.random()))
                   for connect in listeners.all().values() for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for name, connect in listeners.all().items():
            assert is_healthy(connect), f"{name}: others are answered"
        for client in clients:
            client.join(4 * REQUEST_SECONDS)
            assert client.problem is None, f"a slow client connects; it failed with {client.problem!r}"
        longest = max(client.seconds for client in clients)
        assert longest < REQUEST_SECONDS + SLACK, "no request is read for longer than its deadline"
        for name, connect in listeners.all().items():
            assert is_healthy(connect), f"{name}: others are answered afterwards"
        assert worker.stop() == 0, f"the worker stops in order; it wrote: {worker.output()}"
        counts = verify(one, complete=True)
        check_integrity(one.database)
        return {**counts, "slow clients": len(clients)}, [f"the longest request took {longest:.1f} s"]
