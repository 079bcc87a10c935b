"""A token server that rotates without grace: each refresh token works once, and the server records every use."""

import asyncio
import json
import ssl
import threading
import time
import urllib.parse


class Account:
    """One grant on the server."""

    def __init__(self, name):
        self.name = name
        self.issued = 0  # the number of the newest refresh token; the first is 0
        self.uses = []  # (time, number presented, granted or not)
        self.open = 0  # requests being answered
        self.is_ended = False

    def token(self, number):
        return f"1//{self.name}-{number}-refresh"


def owner_of(token):
    return token[3:].rsplit("-", 2)[0]


def number_of(token):
    return int(token.rsplit("-", 2)[1])


class Google:
    """The server, on its own thread.

    `latency` is the maximum delay of an answer; each takes a random part of it, so that some are always in flight.
    `http2` is the protocol of a connection that speaks HTTP/2, in place of HTTP/1.1.
    """

    def __init__(self, names, chance, lifetime=3, latency=0.03, certificate=None, http2=None):
        self.accounts = {name: Account(name) for name in names}
        self.chance = chance
        self.lifetime = lifetime
        self.latency = latency
        self.exchange = http2 or Exchange
        self.habits = {}  # the faults of the server, with the chance of each at a request
        self.faults = 0
        self.grace = False  # with it, the token before the newest still works
        self.ends_at_reuse = False  # with it, a grant ends when a spent token is used again
        self.reuses = 0
        self.overlaps = []  # accounts with two requests at once
        self.pipelined = 0  # requests on a connection before its previous answer was sent
        self.requests = 0
        self.refusals = 0
        self.lock = threading.Lock()
        self.loop = asyncio.new_event_loop()
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
            if http2:
                self.tls.set_alpn_protocols(["h2"])
        began = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(began,), daemon=True)
        self.thread.start()
        began.wait(10)

    def run(self, began):
        asyncio.set_event_loop(self.loop)
        # A connection that breaks with the worker's death is expected.
        self.loop.set_exception_handler(lambda loop, context: None)
        server = self.loop.run_until_complete(
            self.loop.create_server(lambda: self.exchange(self), "127.0.0.1", 0, ssl=self.tls, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        began.set()
        self.loop.run_forever()
        server.close()

    @property
    def url(self):
        return f"https://localhost:{self.port}" if self.tls else f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def answer(self, fields):
        """The status and the body for one request, and the account that it is about."""
        self.requests += 1
        token = fields.get("refresh_token", [""])[0]
        account = self.accounts.get(owner_of(token))
        if not account:
            return 400, {"error": "invalid_grant", "error_description": "Unknown token."}, None
        number = number_of(token)
        if number < account.issued:
            self.reuses += 1
            account.is_ended |= self.ends_at_reuse
        good = (number == account.issued or self.grace and number == account.issued - 1) and not account.is_ended
        with self.lock:
            account.uses.append((time.time(), number, good))
            if account.open:
                self.overlaps.append(account.name)
        if not good:
            self.refusals += 1
            return 400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, account
        if number == account.issued:
            account.issued += 1
        return 200, {
            "access_token": f"ya29.{account.name}-{account.issued}",
            "expires_in": self.lifetime,
            "refresh_token": account.token(account.issued),
            "scope": "openid https://www.googleapis.com/auth/gmail.modify",
            "token_type": "Bearer",
        }, account


class Exchange(asyncio.Protocol):
    """One connection."""

    def __init__(self, google):
        self.google = google
        self.data = b""
        self.accounts = []

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, error):
        for account in self.accounts:
            account.open -= 1
        self.accounts = []

    def data_received(self, data):
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            length, closes = 0, False
            for line in self.data[:end].split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                elif name.lower() == b"connection":
                    closes = value.strip().lower() == b"close"
            if len(self.data) < end + 4 + length:
                return
            body = self.data[end + 4:end + 4 + length]
            self.data = self.data[end + 4 + length:]
            status, members, account = self.google.answer(urllib.parse.parse_qs(body.decode()))
            self.google.pipelined += bool(self.accounts)
            if account:
                account.open += 1
                self.accounts.append(account)
            delay = self.google.latency * self.google.chance.random()
            self.google.loop.call_later(delay, self.reply, status, members, account, closes)

    def reply(self, status, members, account, closes):
        if account in self.accounts:
            self.accounts.remove(account)
            account.open -= 1
        if self.transport.is_closing():
            return
        body = json.dumps(members).encode()
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        if closes:
            self.transport.close()
