"""The peer in Python that does the worker's work, written as such programs usually are: google-auth over requests in 32
threads, sqlite3, and one commit for each grant. same_work_store.py writes its database and checks it afterwards.

    same_work.py [--once] --database FILE --key FILE --url URL --ca-file FILE [--version h1]
"""

import argparse
import datetime
import json
import os
import pathlib
import queue
import random
import sqlite3
import sys
import threading
import time
import traceback

import google.auth.exceptions
import google.auth.transport.requests
import google.oauth2.credentials
import requests
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

THREADS = 32
BATCH = 100
LEASE = 30_000
MARGIN = 600_000
CLAIM = """
UPDATE grants SET lease_until = :lease WHERE id IN (
    SELECT id FROM grants WHERE due_at <= :now AND lease_until <= :now ORDER BY due_at LIMIT :most)
RETURNING id, due_at, attempts, refresh_token, lease_until
"""
SUCCESS = """
UPDATE grants SET state = 'active', access_token = :access, refresh_token = coalesce(:refresh, refresh_token),
    scope = :scope, expires_at = :expires_at, due_at = :due_at, refreshed_at = :now, attempts = 0, error = NULL,
    lease_until = 0 WHERE id = :id AND lease_until = :lease
"""
FAILURE = """
UPDATE grants SET state = :state, error = :error, due_at = :due_at, attempts = attempts + 1, lease_until = 0
WHERE id = :id AND lease_until = :lease
"""


def milliseconds():
    return int(time.time() * 1000)


class Vault:
    """Seals tokens for their row and column."""

    def __init__(self, path):
        self.key = AESGCM(bytes.fromhex(pathlib.Path(path).read_text()))

    def seal(self, token, column, number):
        nonce = os.urandom(12)
        return nonce + self.key.encrypt(nonce, token.encode(), f"{column}:{number}".encode())

    def open(self, sealed, column, number):
        return self.key.decrypt(sealed[:12], sealed[12:], f"{column}:{number}".encode()).decode()


class Store:
    """One connection for all threads: SQLite has one writer at a time."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(path, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")

    def claim(self):
        now = milliseconds()
        with self.lock, self.connection:
            return self.connection.execute(CLAIM, {"lease": now + LEASE, "now": now, "most": BATCH}).fetchall()

    def change(self, statement, values):
        """Returns `False` if another claim has replaced this one."""
        with self.lock, self.connection:
            return self.connection.execute(statement, values).rowcount == 1


class Refresher:
    """Refreshes claimed grants, stores each result and reports it."""

    def __init__(self, store, vault, url, ca_file):
        self.store, self.vault, self.url = store, vault, url
        # A value that is already set here would override the session's own setting.
        os.environ["REQUESTS_CA_BUNDLE"] = ca_file
        session = requests.Session()
        session.mount("https://", requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=THREADS))
        self.request = google.auth.transport.requests.Request(session)

    def refresh(self, number, due_at, attempts, sealed, lease):
        started = milliseconds()
        try:
            values = self.fetch(number, sealed)
            statement, outcome = SUCCESS, "refreshed"
        except google.auth.exceptions.GoogleAuthError as error:
            ended = "invalid_grant" in str(error)
            outcome = "disconnected" if ended else "retrying"
            wait = 30_000 * 2 ** min(attempts, 7)
            again = None if ended else milliseconds() + wait // 2 + random.randrange(wait // 2)
            statement, values = FAILURE, {"state": outcome, "error": str(error), "due_at": again}
        now = milliseconds()
        if not self.store.change(statement, {**values, "now": now, "id": number, "lease": lease}):
            outcome = "lost_lease"
        line = {"time": now, "event": "refresh", "grant": number, "outcome": outcome, "attempt": attempts + 1,
                "lateness_ms": started - due_at, "latency_ms": now - started}
        # One write, so that lines of different threads do not mix.
        sys.stdout.write(json.dumps(line) + "\n")

    def fetch(self, number, sealed):
        refresh_token = self.vault.open(sealed, "refresh_token", number)
        credentials = google.oauth2.credentials.Credentials(
            None, refresh_token=refresh_token, token_uri=self.url, client_id="bench", client_secret="")
        credentials.refresh(self.request)
        rotated = credentials.refresh_token != refresh_token
        # google-auth gives the time of expiry in UTC, without a time zone.
        expires_at = int(credentials.expiry.replace(tzinfo=datetime.UTC).timestamp() * 1000)
        return {
            "access": self.vault.seal(credentials.token, "access_token", number),
            "refresh": self.vault.seal(credentials.refresh_token, "refresh_token", number) if rotated else None,
            "scope": " ".join(credentials.granted_scopes or []),
            "expires_at": expires_at,
            "due_at": expires_at - MARGIN - random.randrange(60_000),
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--once", action="store_true")
    for name in ["database", "key", "url", "ca-file"]:
        parser.add_argument(f"--{name}", required=True)
    # google-auth speaks only HTTP/1.1.
    parser.add_argument("--version", choices=["h1"], default="h1")
    arguments = parser.parse_args()
    store = Store(arguments.database)
    refresher = Refresher(store, Vault(arguments.key), arguments.url, arguments.ca_file)
    claimed = queue.Queue(BATCH)

    def work():
        try:
            while grant := claimed.get():
                refresher.refresh(*grant)
        except BaseException:
            # With a thread less, the queue could stay full.
            traceback.print_exc()
            os._exit(1)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    while (due := store.claim()) or not arguments.once:
        for grant in due:
            claimed.put(grant)
        if not due:
            time.sleep(1)
    for _ in threads:
        claimed.put(None)
    for thread in threads:
        thread.join()


main()
