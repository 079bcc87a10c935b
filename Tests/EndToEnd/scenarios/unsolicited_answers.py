"""A token endpoint that speaks HTTP/1.1 sends answers that no request asked for: every user keeps their own token."""

import contextlib
import json
import socket
import ssl
import subprocess
import threading

USERS = 12
# The ways to send the second answer: with the first one, after it, or once the next request is written.
WAYS = ["same segment", "own segment", "next request"]


class Endpoint(threading.Thread):
    """A token endpoint on raw sockets that adds an answer with another user's token to each of its own."""

    def __init__(self, way, tls=None):
        super().__init__(daemon=True)
        self.way = way
        self.tls = tls
        self.answered = {}  # the access token that each user was given
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://localhost:{self.listener.getsockname()[1]}/token"
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        # A close alone leaves the port listening for as long as the thread waits in accept: it would answer whichever
        # scenario asks there next.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.join(60)
        assert not self.is_alive(), "the endpoint has ended"
        self.listener.close()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            reader = connection.makefile("rb")
            while body := read_request(reader):
                fields = dict(pair.split("=", 1) for pair in body.split("&"))
                user = fields["refresh_token"]
                self.answered[user] = f"at-of-{user}"
                own, other = answer(f"at-of-{user}"), answer("at-of-a-stranger")
                if self.way == "same segment":
                    connection.sendall(own + other)
                    continue
                connection.sendall(own)
                if self.way == "next request":
                    reader.peek(1)
                connection.sendall(other)


def read_request(reader):
    """The body of the next request; empty if the client has closed the connection."""
    length = 0
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return reader.read(length).decode() if line else ""


def answer(access_token):
    body = json.dumps({"access_token": access_token, "expires_in": 3599, "token_type": "Bearer"})
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def certificate(folder):
    """A self-signed certificate for localhost."""
    key, file = folder / "server.key", folder / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", file],
        check=True, capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return context, file


def scenario(fixture):
    fixture.generate_keys()
    tls, authority = certificate(fixture.folder)
    results = []
    for kind in ["plain", "tls"]:
        for way in WAYS:
            users = [f"{kind}-{way.split()[0]}-{number}" for number in range(USERS)]
            lines = [
                {"user_id": user, "refresh_token": user, "access_token": "expired", "expires_at": "2020-01-01T00:00:00",
                 "client_id": "1234-demo.apps.googleusercontent.com", "google_email": f"{user}@example.com"}
                for user in users
            ]
            fixture.run("grants", "import", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
            endpoint = Endpoint(way, tls if kind == "tls" else None)
            # So slow that each request finds the previous connection free.
            fixture.run(
                "--run-once",
                "--max-rate",
                "20",
                "--token-endpoint",
                endpoint.url,
                "--ca-file",
                authority,
                "--metrics-log",
                fixture.folder / f"{kind}-{way.split()[0]}.jsonl",
            )
            endpoint.close()
            stored = {
                line["user_id"]: line["access_token"]
                for line in map(json.loads, fixture.run("grants", "export", "--plaintext").stdout.splitlines())
            }
            assert set(endpoint.answered) >= set(users), f"{kind}, {way}: every user is asked for"
            wrong = {user: stored[user] for user in users if stored[user] != f"at-of-{user}"}
            assert not wrong, f"{kind}, {way}: no user has another user's token"
            results.append(f"{kind}, {way}: {endpoint.connections} connections")
    return "; ".join(results)
