"""Writes the database of the peers that do the worker's work, and checks it afterwards.

    same_work_store.py fill DATABASE KEY-FILE COUNT
    same_work_store.py verify DATABASE KEY-FILE ISSUED-LOG METRICS-LOG

All grants are written as due. Verify opens every stored token. Each grant must have been requested exactly once, and
must hold the access token that the endpoint made from the id of that request, and the refresh token of the start.
"""

import contextlib
import json
import os
import pathlib
import secrets
import sqlite3
import sys
import time

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SCHEMA = """
CREATE TABLE grants (
    id INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL UNIQUE,
    client_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    state TEXT NOT NULL,
    refresh_token BLOB NOT NULL,
    access_token BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    due_at INTEGER,
    lease_until INTEGER NOT NULL DEFAULT 0,
    refreshed_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT
);
CREATE INDEX grants_due ON grants (due_at) WHERE due_at IS NOT NULL;
"""
SCOPE = "openid email https://www.googleapis.com/auth/gmail.readonly"
HOUR = 3_600_000


def refresh_token(number):
    """As long as Google's; it begins with the number for the endpoint's log."""
    return f"1//0{number:010d}-{'x' * 88}"


def issued_token(request):
    """The access token that the endpoint makes from a request's id: the template in harness/endpoint.py."""
    return f"ya29.a0{request * 6}_{request[:20]}"


def seal(key, token, column, number):
    nonce = os.urandom(12)
    return nonce + key.encrypt(nonce, token.encode(), f"{column}:{number}".encode())


def open_sealed(key, sealed, column, number):
    return key.decrypt(sealed[:12], sealed[12:], f"{column}:{number}".encode()).decode()


def fill(database, key_file, count):
    key_file.write_text(secrets.token_hex(32))
    key = AESGCM(bytes.fromhex(key_file.read_text()))
    now = int(time.time() * 1000)
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
        connection.executemany(
            "INSERT INTO grants (id, user_id, client_id, scope, state, refresh_token, access_token, expires_at, due_at)"
            " VALUES (?, ?, 'bench', ?, 'active', ?, ?, ?, ?)",
            ((number, f"user-{number:010d}", SCOPE, seal(key, refresh_token(number), "refresh_token", number),
              seal(key, f"ya29.first-{number:0209d}", "access_token", number), now, now - HOUR + number * HOUR // count)
             for number in range(count)))


def verify(database, key_file, issued, metrics):
    """Returns the number of grants; a difference ends the program."""
    key = AESGCM(bytes.fromhex(key_file.read_text()))
    requests = {}
    for line in issued.read_text().splitlines():
        _, grant, request = line.split()
        if int(grant) in requests:
            raise SystemExit(f"grant {grant} was requested twice")
        requests[int(grant)] = request
    reported = [json.loads(line) for line in metrics.read_text().splitlines()]
    if sorted(line["grant"] for line in reported) != sorted(requests):
        raise SystemExit(f"{len(requests)} grants were requested, and {len(reported)} reported")
    if wrong := [line for line in reported if line["outcome"] != "refreshed"]:
        raise SystemExit(f"a refresh failed: {wrong[0]}")
    now = time.time() * 1000
    with contextlib.closing(sqlite3.connect(database)) as connection:
        count = 0
        for number, state, refresh, access, expires_at, due_at, lease_until in connection.execute(
                "SELECT id, state, refresh_token, access_token, expires_at, due_at, lease_until FROM grants"):
            count += 1
            if (open_sealed(key, access, "access_token", number) != issued_token(requests[number])
                    or open_sealed(key, refresh, "refresh_token", number) != refresh_token(number)
                    or state != "active" or not now < due_at < expires_at or lease_until != 0):
                raise SystemExit(f"grant {number} is not stored as the endpoint answered")
    if count != len(requests):
        raise SystemExit(f"{len(requests)} grants were requested, and {count} are stored")
    return count


match sys.argv[1:]:
    case ["fill", database, key_file, count]:
        fill(database, pathlib.Path(key_file), int(count))
    case ["verify", database, key_file, issued, metrics]:
        print(verify(database, *map(pathlib.Path, (key_file, issued, metrics))))
    case _:
        raise SystemExit(__doc__)
