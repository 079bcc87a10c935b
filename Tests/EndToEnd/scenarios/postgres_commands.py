"""Every command on a PostgreSQL server: from the first start to a copy into a file and back."""

import json
import signal
import sqlite3
import subprocess

from expectations import wait_for

STORE = "postgres"
PASSWORD = "the-password-of-the-test"


def scenario(place):
    server = place.server
    place.generate_keys()
    looks_at_nothing(place)
    grants = place.sandbox.create(count=30)
    place.bring_in(grants[:20])
    shows(place, grants)
    refuses(place)
    worker = place.start().wait_started()
    refreshes_new_grants(place, worker, grants)
    survives_a_loss(place, worker)
    rotates(place)
    worker.stop()
    runs_once(place)
    copies(place)
    starts_before_the_server(place)
    for log in place.folder.glob("*.log"):
        assert PASSWORD not in log.read_text(), f"{log.name} does not hold the password"
    return f"{len(place.grants())} grants on PostgreSQL {server.execute('SHOW server_version').split()[0]}"


def looks_at_nothing(place):
    """Commands that only read do not create tables."""
    for words in (["status"], ["grants", "list"], ["grants", "show", "a"], ["token", "a"], ["notices", "replay"]):
        result = place.run(*words, expect=78)
        assert "holds no tables of refresh-worker yet" in result.stderr, f"{words} says that the database is empty"
    assert "nothing is sealed" in place.run("keys", "list").stderr, "keys list says that nothing is sealed"
    assert "not there yet: the worker makes them" in place.run("doctor", expect=None).stdout, (
        "the doctor says that the tables are made later"
    )
    there = place.server.execute("SELECT to_regnamespace('refresh_worker') IS NULL").strip()
    assert there == "t", "a command that only reads makes no schema"


def shows(place, grants):
    status = json.loads(place.run("status", "--json").stdout)
    assert status["grants"]["active"] == 20, "the status counts the grants"
    assert status["database"]["schema"] >= 1 and status["database"]["bytes"] > 0, (
        "the status shows the schema and the size"
    )
    assert status["database"]["path"].startswith("postgres://"), "the status shows the address"
    assert len(place.run("grants", "list", "--json").stdout.splitlines()) == 20, "grants list shows each grant"
    user = grants[0]["email"]
    assert json.loads(place.run("grants", "show", user, "--json").stdout)["user_id"] == user, (
        "grants show shows the user's grant"
    )
    assert place.run("token", user).stdout.strip() == grants[0]["access_token"], "token prints the stored token"
    assert len(place.run("grants", "export", "--plaintext").stdout.splitlines()) == 20, (
        "grants export writes each grant"
    )
    doctor = place.run("doctor", expect=None).stdout
    for words in ("database server", "within this machine", "database clock", "autovacuum", "20 grants"):
        assert words in doctor, f"the doctor says {words!r}"
    backup = place.run("backup", place.folder / "copy", expect=78)
    assert "pg_dump --format=custom" in backup.stderr, "backup names pg_dump's command"
    line = next(line for line in backup.stderr.splitlines() if "run: pg_dump" in line).split("run: ")[1]
    subprocess.run(line, shell=True, check=True, capture_output=True)
    assert (place.folder / "copy").stat().st_size > 0, "the command that backup names makes a copy"
    users = json.dumps({"user_id": "imported", "email": "imported@example.com"}) + "\n"
    place.run("users", "import", "-", stdin=users)
    imported = place.rows("SELECT email FROM users WHERE user_id = 'imported'")
    assert imported[0]["email"] == "imported@example.com", "users import stores the user"
    place.run("notices", "replay")
    place.run("grants", "disconnect", grants[1]["email"])
    assert place.grants()[grants[1]["email"]]["state"] == "disconnected", "grants disconnect ends the grant"


def refuses(place):
    """Mistakes of an operator, each with its own message and exit code."""
    url = place.database

    def refused(database, code, *words):
        place.database, former = database, place.database
        try:
            result = place.run("status", expect=code)
        finally:
            place.database = former
        for word in words:
            assert word in result.stderr, f"the error names {word!r}"
        assert PASSWORD not in result.stderr + result.stdout, "the password is not shown"

    refused(url.replace("postgres@", f"postgres:{PASSWORD}@"), 78, "holds a password")
    refused(url.replace("/postgres?", "/nothing?"), 78, "nothing")
    refused(f"postgres://postgres@/postgres?host={place.folder}/nowhere", 74, "cannot be reached")
    refused("postgres://postgres@127.0.0.1:1/postgres", 74, "cannot be reached")
    refused("mysql://root@h/db", 78, "neither the path")
    refused(url + "&sslmod=require", 78, "not understood")
    # In the environment a password is allowed, and does not show anywhere.
    place.environment["REFRESH_WORKER_DATABASE"] = url.replace("postgres@", f"postgres:{PASSWORD}@")
    place.database, former = None, place.database
    try:
        shown = place.run("status").stdout
        assert PASSWORD not in shown and "postgres://postgres@/postgres" in shown, (
            "the address is shown without its password"
        )
        held = place.folder / "url"
        held.write_text(place.environment["REFRESH_WORKER_DATABASE"] + "\n")
        held.chmod(0o600)
        place.environment["REFRESH_WORKER_DATABASE"] = f"url-file:{held}"
        assert PASSWORD not in place.run("status").stdout, "the password from a file is not shown"
        held.chmod(0o644)
        assert "chmod 600" in place.run("status", expect=78).stderr, "a password file that others can read is refused"
    finally:
        place.database = former
        del place.environment["REFRESH_WORKER_DATABASE"]


def refreshes_new_grants(place, worker, grants):
    """A worker that runs refreshes what another process has stored."""
    late = place.sandbox.create_expired("late@example.com")
    place.bring_in([late])
    wait_for(
        lambda: worker.events("refresh", outcome="refreshed"), 20, "the grant that another process stored was refreshed"
    )


def survives_a_loss(place, worker):
    place.server.stop()
    wait_for(lambda: "the database cannot be used" in worker.errors.read_text(), 60, "the loss is reported")
    place.server.start()
    wait_for(lambda: "the database can be used again" in worker.errors.read_text(), 60, "the return is reported")
    text = worker.errors.read_text()
    assert text.count("the database can be used again") == 1, "the return is reported once"
    states = place.states()
    assert states["active"] == 20 and states["disconnected"] == 1, "one grant is disconnected and the others are active"


def rotates(place):
    place.run("keys", "rotate")
    key = place.run("keys", "list").stdout.splitlines()
    assert len(key) >= 2, "keys list shows the keys"


def runs_once(place):
    late = place.sandbox.create_expired("cron@example.com")
    place.bring_in([late])
    summary = json.loads(place.run("--run-once").stdout.splitlines()[-1])
    assert summary["refreshed"] == 1, "the due grant is refreshed"


def copies(place):
    """Into a file and back into another database, with a copy killed on the way."""
    file = place.folder / "copy.sqlite"
    first = place.run("store", "copy", "--from", place.database, "--to", file).stdout
    assert "both hold the same: SHA-256" in first, "both databases have the same checksum"
    digest = first.split("SHA-256 ")[1].split()[0]
    again = place.run("store", "copy", "--from", place.database, "--to", file, expect=73)
    assert "holds data already" in again.stderr, "a database with data is not overwritten"
    moved(place, file)
    place.server.execute("CREATE DATABASE second")
    second = place.database.replace("/postgres?", "/second?")
    back = place.run("store", "copy", "--from", file, "--to", second).stdout
    assert digest in back, "the checksum is the same after the way back"

    place.server.execute("CREATE DATABASE third")
    third = place.database.replace("/postgres?", "/third?")
    unfinished(place, second, third, digest)
    killed(place)
    # A damaged row is reported by its grant, and the copy does not claim to be complete.
    with sqlite3.connect(file) as database:
        one = "SELECT max(id) FROM grants WHERE refresh_token NOT NULL"
        database.execute(f"UPDATE grants SET refresh_token = x'00' WHERE id = ({one})")
    place.server.execute("CREATE DATABASE fourth")
    fourth = place.database.replace("/postgres?", "/fourth?")
    damaged = place.run("store", "copy", "--from", file, "--to", fourth, expect=78)
    assert "damaged" in damaged.stderr, "the damaged copy is found"
    # The database that everything has been copied to by now.
    place.database = third


def moved(place, target):
    """Commands that would change a copied database refuse it; reading still works."""
    user = next(iter(place.grants()))
    for words in (["--run-once"], ["token", user], ["grants", "disconnect", user], ["keys", "rotate"]):
        result = place.run(*words, expect=78)
        assert f"was moved to the SQLite file {target}, and can only be read" in result.stderr, (
            f"{words} says where the database was moved to"
        )
    assert place.start().process.wait(timeout=60) == 78, "a worker does not start on a moved database"
    for words in (["status"], ["grants", "list"], ["grants", "show", user]):
        assert "was moved" in place.run(*words).stderr, f"{words} says that the database was moved"
    assert "was moved to" in place.run("doctor", expect=78).stdout, "the doctor says where the database was moved to"


def killed(place):
    """A copy that is killed in the middle continues from there."""
    url, place.database = place.database, place.folder / "many.sqlite"
    users = "".join(json.dumps({"user_id": f"user {number}"}) + "\n" for number in range(30_000))
    place.run("users", "import", "-", stdin=users)
    place.database = url
    place.server.execute("CREATE DATABASE fifth")
    target = url.replace("/postgres?", "/fifth?")
    words = ["store", "copy", "--from", place.folder / "many.sqlite", "--to", target]
    copy = subprocess.Popen(place.arguments(*words), env=place.environment, stdout=subprocess.DEVNULL)
    administrator = place.server.url
    place.server.url = target

    def received():
        there = place.server.execute("SELECT to_regclass('refresh_worker.notices') IS NOT NULL").strip() == "t"
        return there and int(place.server.execute("SELECT count(*) FROM users"))

    wait_for(received, 60, "the copy has begun", pause=0)
    copy.kill()
    copy.wait(timeout=20)
    before = received()
    assert 0 < before < 30_000, "the kill interrupts the copy"
    place.server.url = administrator
    again = place.run(*words).stdout
    assert f"({before} of them before this was interrupted)" in again, "the second copy continues the first"
    assert "30000 users" in again, "the second copy is complete"


def unfinished(place, source, target, digest):
    """A copy that was killed keeps workers away and continues when it is run again."""
    url, place.database = place.database, target
    try:
        # The tables, without a record.
        place.run("users", "import", "-", stdin="")
        administrator = place.server
        former, administrator.url = administrator.url, target
        administrator.execute("INSERT INTO meta VALUES ('receiving_copy', 'begun')")
        administrator.url = former
        for words in (["status"], ["--run-once"], ["grants", "list"]):
            result = place.run(*words, expect=78)
            assert "was not finished" in result.stderr, f"{words} says that the copy is unfinished"
        assert "was not finished" in place.run("doctor", expect=78).stdout, (
            "the doctor says that the copy is unfinished"
        )
        done = place.run("store", "copy", "--from", source, "--to", target).stdout
        assert digest in done, "the finished copy has the same checksum"
        place.run("status")
    finally:
        place.database = url


def starts_before_the_server(place):
    """A worker that is started while the server is away waits for it; a wrong name ends the start."""
    place.server.stop()
    worker = place.start()
    wait_for(lambda: "waiting for the database" in worker.errors.read_text(), 60, "it says that it waits")
    assert worker.process.poll() is None, "the worker waits for the database"
    place.server.start()
    worker.wait_started()
    worker.stop()
    place.database, former = place.database.replace("/third?", "/missing?"), place.database
    refused = place.start()
    assert refused.process.wait(timeout=60) == 78, "a wrong name ends the worker"
    place.database = former
    place.server.stop()
    impatient = place.start()
    wait_for(lambda: "waiting for the database" in impatient.errors.read_text(), 60, "it waits")
    impatient.signal(signal.SIGTERM)
    assert impatient.process.wait(timeout=20) == -signal.SIGTERM, "a signal ends the wait at once"
    place.server.start()
