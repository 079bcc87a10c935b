"""Operator errors and accidents: a reload with a broken file, a database with a damaged row, a machine with few
files."""

import pathlib
import signal
import socket
import sqlite3

from accounts import Accounts, user_token
from expectations import wait_for

# It uses a file of an older version.
STORE = "sqlite"

OPEN_FILES = 256


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox, public = fixture.sandbox, accounts.public
    sandbox.settings(lifetime=3600)
    grant = sandbox.create(email="ada@gmail.com")[0]
    accounts.connect(grant, user_token("u-1")).expect(201)

    # A refused reload changes nothing, not even the valid settings of the file.
    configuration = accounts.write("settings", "REFRESH_WORKER_LOG_LEVEL=warning")
    accounts.worker.stop()
    accounts.start("--config", configuration)
    errors = accounts.worker.errors
    configuration.write_text("REFRESH_WORKER_LOG_LEVEL=debug\n")
    services = fixture.folder / "services.json"
    whole = services.read_text()
    services.write_text("{broken")
    accounts.worker.signal(signal.SIGHUP)
    wait_for(lambda: "not reloaded" in errors.read_text(), 60, "the reload is refused")
    accounts.vend("u-1").expect(200)
    assert " debug " not in errors.read_text(), "a refused reload does not change the log level"
    assert "CommandError" not in errors.read_text(), "the log shows no type names"
    services.write_text(whole)
    accounts.worker.signal(signal.SIGHUP)
    wait_for(lambda: "request" in errors.read_text() or not accounts.vend("u-1"), 60, "the whole file is applied")
    accounts.worker.stop()

    # A token of an older version's database that is damaged must not keep ended sessions and sealed successors.
    with sqlite3.connect(fixture.database) as database:
        database.execute(
            "UPDATE grants SET refresh_token = x'00', refresh_prefix_mark = NULL, refresh_digest_mark = NULL"
        )
    accounts.start("--session-grace", "15")
    pair = accounts.sign_in(grant)
    public.post("/api/auth/refresh", {"refresh_token": pair["refresh_token"]}).expect(200)
    assert fixture.rows("SELECT successor FROM sessions")[0]["successor"] is not None, (
        "the successor is kept for the grace period"
    )
    wait_for(
        lambda: fixture.rows("SELECT successor FROM sessions")[0]["successor"] is None, 60, "the successor is wiped"
    )
    accounts.worker.stop()

    # However few files are allowed, clients leave the worker those that it needs.
    accounts.start(prefix=("prlimit", f"--nofile={OPEN_FILES}:{OPEN_FILES}"))
    idle = []
    for number in range(OPEN_FILES + 100):
        connection = socket.socket()
        connection.bind((f"127.0.{1 + number // 100}.{1 + number % 100}", 0))
        connection.connect(("127.0.0.1", accounts.port))
        idle.append(connection)
    held = 0

    files = pathlib.Path(f"/proc/{accounts.worker.process.pid}/fd")

    def is_stable():
        nonlocal held
        former, held = held, len(list(files.iterdir()))
        return held == former

    wait_for(is_stable, 60, "the worker keeps as many idle connections as its limit allows", pause=0.5)
    assert held < OPEN_FILES - 32, "idle connections leave files free"
    for connection in idle:
        connection.close()
    accounts.close()
    return f"{held} of {OPEN_FILES} files open at most"
