"""Every command on a PostgreSQL server: from the first start to a copy into a file and back."""

import json
import signal
import sqlite3
import subprocess

from harness import check, wait_for

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
        check(PASSWORD not in log.read_text(), f"{log.name} holds the password")
    return f"{len(place.grants())} grants on PostgreSQL {server.execute('SHOW server_version').split()[0]}"


def looks_at_nothing(place):
    """Commands that only read do not create tables."""
    for words in (["status"], ["grants", "list"], ["grants", "show", "a"], ["token", "a"], ["notices", "replay"]):
        result = place.run(*words, expect=78)
        check("holds no tables of refresh-worker yet" in result.stderr, f"{words}: {result.stderr}")
    check("nothing is sealed" in place.run("keys", "list").stderr, "keys list knows that nothing is sealed")
    check("not there yet: the worker makes them" in place.run("doctor", expect=None).stdout, "the doctor says so too")
    there = place.server.execute("SELECT to_regnamespace('refresh_worker') IS NULL").strip()
    check(there == "t", "a command that only looks has made a schema")


def shows(place, grants):
    status = json.loads(place.run("status", "--json").stdout)
    check(status["grants"]["active"] == 20, f"{status}")
    check(status["database"]["schema"] >= 1 and status["database"]["bytes"] > 0, f"{status['database']}")
    check(status["database"]["path"].startswith("postgres://"), f"{status['database']}")
    check(len(place.run("grants", "list", "--json").stdout.splitlines()) == 20, "grants list shows all")
    user = grants[0]["email"]
    check(json.loads(place.run("grants", "show", user, "--json").stdout)["user_id"] == user, "grants show")
    check(place.run("token", user).stdout.strip() == grants[0]["access_token"], "token prints the stored token")
    check(len(place.run("grants", "export", "--plaintext").stdout.splitlines()) == 20, "grants export writes all")
    doctor = place.run("doctor", expect=None).stdout
    for words in ("database server", "within this machine", "database clock", "autovacuum", "20 grants"):
        check(words in doctor, f"the doctor does not say {words!r}: {doctor}")
    backup = place.run("backup", place.folder / "copy", expect=78)
    check("pg_dump --format=custom" in backup.stderr, backup.stderr)
    line = next(line for line in backup.stderr.splitlines() if "run: pg_dump" in line).split("run: ")[1]
    subprocess.run(line, shell=True, check=True, capture_output=True)
    check((place.folder / "copy").stat().st_size > 0, "the line that backup tells makes a copy")
    users = json.dumps({"user_id": "imported", "email": "imported@example.com"}) + "\n"
    place.run("users", "import", "-", stdin=users)
    imported = place.rows("SELECT email FROM users WHERE user_id = 'imported'")
    check(imported[0]["email"] == "imported@example.com", "users import")
    place.run("notices", "replay")
    place.run("grants", "disconnect", grants[1]["email"])
    check(place.grants()[grants[1]["email"]]["state"] == "disconnected", "grants disconnect")


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
            check(word in result.stderr, f"{word!r} is not in: {result.stderr}")
        check(PASSWORD not in result.stderr + result.stdout, "the password is shown")

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
        check(PASSWORD not in shown and "postgres://postgres@/postgres" in shown, shown)
        held = place.folder / "url"
        held.write_text(place.environment["REFRESH_WORKER_DATABASE"] + "\n")
        held.chmod(0o600)
        place.environment["REFRESH_WORKER_DATABASE"] = f"url-file:{held}"
        check(PASSWORD not in place.run("status").stdout, "the password of a file is shown")
        held.chmod(0o644)
        check("chmod 600" in place.run("status", expect=78).stderr, "a file that is open to all is taken")
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
    check(text.count("the database can be used again") == 1, "the return is reported once")
    states = place.states()
    check(states["active"] == 20 and states["disconnected"] == 1, f"{states}")


def rotates(place):
    place.run("keys", "rotate")
    key = place.run("keys", "list").stdout.splitlines()
    check(len(key) >= 2, f"{key}")


def runs_once(place):
    late = place.sandbox.create_expired("cron@example.com")
    place.bring_in([late])
    summary = json.loads(place.run("--run-once").stdout.splitlines()[-1])
    check(summary["refreshed"] == 1, f"{summary}")


def copies(place):
    """Into a file and back into another database, with a copy killed on the way."""
    file = place.folder / "copy.sqlite"
    first = place.run("store", "copy", "--from", place.database, "--to", file).stdout
    check("both hold the same: SHA-256" in first, first)
    digest = first.split("SHA-256 ")[1].split()[0]
    again = place.run("store", "copy", "--from", place.database, "--to", file, expect=73)
    check("holds data already" in again.stderr, again.stderr)
    moved(place, file)
    place.server.execute("CREATE DATABASE second")
    second = place.database.replace("/postgres?", "/second?")
    back = place.run("store", "copy", "--from", file, "--to", second).stdout
    check(digest in back, f"the checksum differs after the way back: {first} {back}")

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
    check("damaged" in damaged.stderr, damaged.stderr)
    # The database that everything has been copied to by now.
    place.database = third


def moved(place, target):
    """Commands that would change a copied database refuse it; reading still works."""
    user = next(iter(place.grants()))
    for words in (["--run-once"], ["token", user], ["grants", "disconnect", user], ["keys", "rotate"]):
        result = place.run(*words, expect=78)
        check(f"was moved to the SQLite file {target}, and can only be read" in result.stderr, f"{words}: {result.stderr}")
    check(place.start().process.wait(timeout=60) == 78, "a worker starts on what was moved")
    for words in (["status"], ["grants", "list"], ["grants", "show", user]):
        check("was moved" in place.run(*words).stderr, f"{words} do not say that it was moved")
    check("was moved to" in place.run("doctor", expect=78).stdout, "the doctor does not say where it went")


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
    check(0 < before < 30_000, f"the copy was not killed in the middle: {before}")
    place.server.url = administrator
    again = place.run(*words).stdout
    check(f"({before} of them before this was interrupted)" in again, again)
    check("30000 users" in again, again)


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
            check("was not finished" in result.stderr, f"{words}: {result.stderr}")
        check("was not finished" in place.run("doctor", expect=78).stdout, "the doctor says so too")
        done = place.run("store", "copy", "--from", source, "--to", target).stdout
        check(digest in done, done)
        place.run("status")
    finally:
        place.database = url


def starts_before_the_server(place):
    """A worker that is started while the server is away waits for it; a wrong name ends the start."""
    place.server.stop()
    worker = place.start()
    wait_for(lambda: "waiting for the database" in worker.errors.read_text(), 60, "it says that it waits")
    check(worker.process.poll() is None, "it ended")
    place.server.start()
    worker.wait_started()
    worker.stop()
    place.database, former = place.database.replace("/third?", "/missing?"), place.database
    refused = place.start()
    check(refused.process.wait(timeout=60) == 78, f"a wrong name: {refused.process.returncode}")
    place.database = former
    place.server.stop()
    impatient = place.start()
    wait_for(lambda: "waiting for the database" in impatient.errors.read_text(), 60, "it waits")
    impatient.signal(signal.SIGTERM)
    check(impatient.process.wait(timeout=20) == -signal.SIGTERM, "a signal ends the waiting at once")
    place.server.start()
