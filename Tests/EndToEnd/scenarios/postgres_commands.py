"""Every command on a PostgreSQL server: from the first start to a copy into a file and back."""

import json
import signal
import sqlite3
import subprocess

from expectations import wait_for

STORE = "postgres"
PASSWORD = "the-password-of-the-test"
USERS = 60_000
HAS_BEGUN = """
SET statement_timeout = '60s';
DO $$
DECLARE has_begun boolean := false;
BEGIN
    WHILE NOT has_begun LOOP
        PERFORM pg_sleep(0.001);
        IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'refresh_worker' AND tablename = 'users') THEN
            EXECUTE 'SELECT EXISTS (SELECT FROM refresh_worker.users)' INTO has_begun;
        END IF;
    END LOOP;
END $$
"""


def scenario(fixture):
    server = fixture.server
    fixture.generate_keys()
    looks_at_nothing(fixture)
    grants = fixture.sandbox.create(count=30)
    fixture.import_grants(grants[:20])
    shows(fixture, grants)
    refuses(fixture)
    worker = fixture.start().wait_started()
    refreshes_new_grants(fixture, worker, grants)
    survives_a_loss(fixture, worker)
    rotates(fixture)
    worker.stop()
    runs_once(fixture)
    copies(fixture)
    starts_before_the_server(fixture)
    for log in fixture.folder.glob("*.log"):
        assert PASSWORD not in log.read_text(), f"{log.name} does not hold the password"
    return f"{len(fixture.grants())} grants on PostgreSQL {server.execute('SHOW server_version').split()[0]}"


def looks_at_nothing(fixture):
    """Commands that only read do not create tables."""
    for words in (["status"], ["grants", "list"], ["grants", "show", "a"], ["token", "a"], ["notices", "replay"]):
        result = fixture.run(*words, expect=2 if words == ["status"] else 78)
        assert "holds no tables of refresh-worker yet" in result.stderr, f"{words} says that the database is empty"
    assert "nothing is sealed" in fixture.run("keys", "list").stderr, "keys list says that nothing is sealed"
    assert "missing: the worker creates them" in fixture.run("doctor", expect=None).stdout, (
        "the doctor says that the tables are made later"
    )
    there = fixture.server.execute("SELECT to_regnamespace('refresh_worker') IS NULL").strip()
    assert there == "t", "a command that only reads makes no schema"


def shows(fixture, grants):
    status = json.loads(fixture.run("status", "--json").stdout)
    assert status["grants"]["active"] == 20, "the status counts the grants"
    assert status["database"]["schema"] >= 1 and status["database"]["bytes"] > 0, (
        "the status shows the schema and the size"
    )
    assert status["database"]["path"].startswith("postgres://"), "the status shows the address"
    assert len(fixture.run("grants", "list", "--json").stdout.splitlines()) == 20, "grants list shows each grant"
    user = grants[0]["email"]
    assert json.loads(fixture.run("grants", "show", user, "--json").stdout)["user_id"] == user, (
        "grants show shows the user's grant"
    )
    assert fixture.run("token", user).stdout.strip() == grants[0]["access_token"], "token prints the stored token"
    assert len(fixture.run("grants", "export", "--plaintext", "--json").stdout.splitlines()) == 20, (
        "grants export writes each grant"
    )
    doctor = fixture.run("doctor", expect=None).stdout
    for words in ("database server", "within this machine", "database clock", "autovacuum", "20 grants"):
        assert words in doctor, f"the doctor says {words!r}"
    backup = fixture.run("backup", fixture.folder / "copy", expect=78)
    assert "pg_dump --format=custom" in backup.stderr, "backup names pg_dump's command"
    line = next(line for line in backup.stderr.splitlines() if "run: pg_dump" in line).split("run: ")[1]
    subprocess.run(line, shell=True, check=True, capture_output=True)
    assert (fixture.folder / "copy").stat().st_size > 0, "the command that backup names makes a copy"
    users = json.dumps({"user_id": "imported", "email": "imported@example.com"}) + "\n"
    fixture.run("users", "import", "-", stdin=users)
    imported = fixture.rows("SELECT email FROM users WHERE user_id = 'imported'")
    assert imported[0]["email"] == "imported@example.com", "users import stores the user"
    fixture.run("notices", "replay")
    fixture.run("grants", "disconnect", grants[1]["email"])
    assert fixture.grants()[grants[1]["email"]]["state"] == "disconnected", "grants disconnect ends the grant"


def refuses(fixture):
    """Mistakes of an operator, each with its own message and exit code."""
    url = fixture.database

    def refused(database, code, *words):
        fixture.database, former = database, fixture.database
        try:
            result = fixture.run("grants", "list", expect=code)
            expected = 64 if code == 64 else 2
            unknown = fixture.run("status", expect=None).returncode
            assert unknown == expected, "a status that is unknown has its own code"
        finally:
            fixture.database = former
        for word in words:
            assert word in result.stderr, f"the error names {word!r}"
        assert PASSWORD not in result.stderr + result.stdout, "the password is not shown"

    refused(url.replace("postgres@", f"postgres:{PASSWORD}@"), 64, "holds a password")
    refused(url.replace("/postgres?", "/nothing?"), 78, "nothing")
    refused(f"postgres://postgres@/postgres?host={fixture.folder}/nowhere", 74, "cannot be reached")
    refused("postgres://postgres@127.0.0.1:1/postgres", 74, "cannot be reached")
    refused("mysql://root@h/db", 64, "neither the path")
    refused(url + "&sslmod=require", 64, "not understood")
    # In the environment a password is allowed, and does not show anywhere.
    fixture.environment["REFRESH_WORKER_DATABASE"] = url.replace("postgres@", f"postgres:{PASSWORD}@")
    fixture.database, former = None, fixture.database
    try:
        shown = fixture.run("status").stdout
        assert PASSWORD not in shown and "postgres://postgres@/postgres" in shown, (
            "the address is shown without its password"
        )
        held = fixture.folder / "url"
        held.write_text(fixture.environment["REFRESH_WORKER_DATABASE"] + "\n")
        held.chmod(0o600)
        fixture.environment["REFRESH_WORKER_DATABASE"] = f"url-file:{held}"
        assert PASSWORD not in fixture.run("status").stdout, "the password from a file is not shown"
        held.chmod(0o644)
        assert "chmod 600" in fixture.run("status", expect=78).stderr, "a password file that others can read is refused"
    finally:
        fixture.database = former
        del fixture.environment["REFRESH_WORKER_DATABASE"]


def refreshes_new_grants(fixture, worker, grants):
    """A worker that runs refreshes what another process has stored."""
    late = fixture.sandbox.create_expired("late@example.com")
    fixture.import_grants([late])
    wait_for(
        lambda: worker.events("refresh", outcome="refreshed"), 60, "the grant that another process stored was refreshed"
    )


def survives_a_loss(fixture, worker):
    fixture.server.stop()
    wait_for(lambda: "the database cannot be used" in worker.errors.read_text(), 60, "the loss is reported")
    fixture.server.start()
    wait_for(lambda: "the database can be used again" in worker.errors.read_text(), 60, "the return is reported")
    text = worker.errors.read_text()
    assert text.count("the database can be used again") == 1, "the return is reported once"
    states = fixture.states()
    assert states["active"] == 20 and states["disconnected"] == 1, "one grant is disconnected and the others are active"


def rotates(fixture):
    fixture.run("keys", "rotate")
    key = fixture.run("keys", "list").stdout.splitlines()
    assert len(key) >= 2, "keys list shows the keys"


def runs_once(fixture):
    late = fixture.sandbox.create_expired("cron@example.com")
    fixture.import_grants([late])
    summary = json.loads(fixture.run("--run-once").stdout.splitlines()[-1])
    assert summary["refreshed"] == 1, "the due grant is refreshed"


def copies(fixture):
    """Into a file and back into another database, with a copy killed on the way."""
    file = fixture.folder / "copy.sqlite"
    first = fixture.run("store", "copy", "--from", fixture.database, "--to", file).stdout
    assert "both databases have the same content: SHA-256" in first, "both databases have the same checksum"
    digest = first.split("SHA-256 ")[1].split()[0]
    again = fixture.run("store", "copy", "--from", fixture.database, "--to", file, expect=73)
    assert "contains data already" in again.stderr, "a database with data is not overwritten"
    moved(fixture, file)
    fixture.server.execute("CREATE DATABASE second")
    second = fixture.database.replace("/postgres?", "/second?")
    back = fixture.run("store", "copy", "--from", file, "--to", second).stdout
    assert digest in back, "the checksum is the same after the way back"

    fixture.server.execute("CREATE DATABASE third")
    third = fixture.database.replace("/postgres?", "/third?")
    unfinished(fixture, second, third, digest)
    killed(fixture)
    # A damaged row is reported by its grant, and the copy does not claim to be complete.
    with sqlite3.connect(file) as database:
        one = "SELECT max(id) FROM grants WHERE refresh_token NOT NULL"
        database.execute(f"UPDATE grants SET refresh_token = x'00' WHERE id = ({one})")
    fixture.server.execute("CREATE DATABASE fourth")
    fourth = fixture.database.replace("/postgres?", "/fourth?")
    damaged = fixture.run("store", "copy", "--from", file, "--to", fourth, expect=78)
    assert "damaged" in damaged.stderr, "the damaged copy is found"
    # The database that everything has been copied to by now.
    fixture.database = third


def moved(fixture, target):
    """Commands that would change a copied database refuse it; reading still works."""
    user = next(iter(fixture.grants()))
    for words in (["--run-once"], ["token", user], ["grants", "disconnect", user], ["keys", "rotate"]):
        result = fixture.run(*words, expect=78)
        assert f"was moved to the SQLite file {target}, and can only be read" in result.stderr, (
            f"{words} says where the database was moved to"
        )
    assert fixture.start().process.wait(timeout=60) == 78, "a worker does not start on a moved database"
    for words in (["status"], ["grants", "list"], ["grants", "show", user]):
        assert "was moved" in fixture.run(*words).stderr, f"{words} says that the database was moved"
    assert "was moved to" in fixture.run("doctor", expect=78).stdout, "the doctor says where the database was moved to"


def killed(fixture):
    """A copy that is killed in the middle continues from there."""
    url, fixture.database = fixture.database, fixture.folder / "many.sqlite"
    users = "".join(json.dumps({"user_id": f"user {number}"}) + "\n" for number in range(USERS))
    fixture.run("users", "import", "-", stdin=users)
    fixture.database = url
    fixture.server.execute("CREATE DATABASE fifth")
    target = url.replace("/postgres?", "/fifth?")
    words = ["store", "copy", "--from", fixture.folder / "many.sqlite", "--to", target]
    copy = subprocess.Popen(fixture.arguments(*words), env=fixture.environment, stdout=subprocess.DEVNULL)
    administrator = fixture.server.url
    fixture.server.url = target

    # The server itself looks each millisecond: a client for each look would be slower than the copy.
    fixture.server.execute(HAS_BEGUN)
    copy.kill()
    copy.wait(timeout=60)
    # The server might still commit what it got before.
    others = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND backend_type = 'client backend'"""
    wait_for(lambda: fixture.server.execute(others).strip() == "0", 60, "the session of the killed copy ends")
    before = int(fixture.server.execute("SELECT count(*) FROM users"))
    assert 0 < before < USERS, "the kill interrupts the copy"
    fixture.server.url = administrator
    again = fixture.run(*words).stdout
    assert f"({before} of them before this was interrupted)" in again, "the second copy continues the first"
    assert f"{USERS} users" in again, "the second copy is complete"


def unfinished(fixture, source, target, digest):
    """A copy that was killed keeps workers away and continues when it is run again."""
    url, fixture.database = fixture.database, target
    try:
        # The tables, without a record.
        fixture.run("users", "import", "-", stdin="")
        administrator = fixture.server
        former, administrator.url = administrator.url, target
        administrator.execute("INSERT INTO meta VALUES ('receiving_copy', 'begun')")
        administrator.url = former
        for words in (["status"], ["--run-once"], ["grants", "list"]):
            result = fixture.run(*words, expect=2 if words == ["status"] else 78)
            assert "was not finished" in result.stderr, f"{words} says that the copy is unfinished"
        assert "was not finished" in fixture.run("doctor", expect=78).stdout, (
            "the doctor says that the copy is unfinished"
        )
        done = fixture.run("store", "copy", "--from", source, "--to", target).stdout
        assert digest in done, "the finished copy has the same checksum"
        fixture.run("status")
    finally:
        fixture.database = url


def starts_before_the_server(fixture):
    """A worker that is started while the server is away waits for it; a wrong name ends the start."""
    fixture.server.stop()
    worker = fixture.start()
    wait_for(lambda: "waiting for the database" in worker.errors.read_text(), 60, "it says that it waits")
    assert worker.process.poll() is None, "the worker waits for the database"
    fixture.server.start()
    worker.wait_started()
    worker.stop()
    fixture.database, former = fixture.database.replace("/third?", "/missing?"), fixture.database
    refused = fixture.start()
    assert refused.process.wait(timeout=60) == 78, "a wrong name ends the worker"
    fixture.database = former
    fixture.server.stop()
    impatient = fixture.start()
    wait_for(lambda: "waiting for the database" in impatient.errors.read_text(), 60, "it waits")
    impatient.signal(signal.SIGTERM)
    assert impatient.process.wait(timeout=60) == -signal.SIGTERM, "a signal ends the wait at once"
    fixture.server.start()
