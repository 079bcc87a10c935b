"""The database does not accept writes for a while, and unusable databases are reported at the start."""

from accounts import Accounts
from expectations import wait_for
from faults import Rounds

STORE = "postgres"

GRANTS = 40
PASSWORD = "not-the-right-one"


def scenario(fixture):
    refuses_to_start(fixture)
    accounts = Accounts(fixture)
    rounds = Rounds(fixture, GRANTS)
    rounds.begin(hold=True)
    rounds.wait_held()
    # Existing sessions keep the setting with which they began, so they are ended, as in a fail-over.
    fixture.server.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
    fixture.server.end_sessions("refresh-worker")
    rounds.release(rounds.emails)
    errors = accounts.worker.errors
    wait_for(lambda: "does not accept writes" in errors.read_text(), 60, "it says that the database takes no writes")
    wait_for(lambda: not accounts.is_ready(), 60, "it is not ready")
    answer = accounts.internal.get("/readyz")
    assert answer.json["checks"]["database"] == "read_only", "the probe says that the database is read-only"
    wait_for(lambda: "the database cannot be used" in errors.read_text(), 60, "it says that the database is lost")
    waiting = fixture.rows("SELECT count(*) AS n FROM grant_schedule WHERE lease_owner IS NOT NULL")[0]["n"]
    assert waiting == GRANTS, "every response waits to be stored"
    # The worker's sessions keep their setting; it must open new ones on its own.
    fixture.server.execute(
        "SET transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only"
    )
    rounds.wait_stored(40, "the answers that waited in memory are stored")
    wait_for(accounts.is_ready, 60, "it is ready again")
    wait_for(lambda: "the database can be used again" in errors.read_text(), 60, "it says so")
    for words in ("the database cannot be used", "the database can be used again"):
        assert errors.read_text().count(words) == 1, f"{words!r} is reported once"
    accounts.close()
    return rounds.verify()


def refuses_to_start(fixture):
    """A worker that cannot use its database reports the reason and ends with the exit code of a wrong configuration."""
    server = fixture.server
    fixture.generate_keys()
    url = fixture.database

    def refused(database, *words):
        fixture.database = database
        worker = fixture.start()
        code = worker.process.wait(timeout=60)
        output = worker.errors.read_text()
        fixture.database = url
        assert code == 78, f"the worker exits with 78; it wrote: {output}"
        for word in words:
            assert word in output, f"the error names {word!r}"
        assert PASSWORD not in output, "the password is not shown"

    # Before there is a schema, in a database where the user may not create one.
    server.execute("CREATE ROLE stranger LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    stranger = url.replace("postgres://postgres@", "postgres://stranger@")
    refused(stranger, "stranger cannot create the schema", "CREATE SCHEMA refresh_worker AUTHORIZATION stranger")

    server.execute("CREATE ROLE locked LOGIN PASSWORD 'the-right-one'")
    pass_file = fixture.folder / "pgpass"
    pass_file.write_text(f"*:*:*:*:{PASSWORD}\n")
    pass_file.chmod(0o600)
    locked = url.replace("postgres://postgres@", "postgres://locked@")
    refused(f"{locked}&passfile={pass_file}", "refuses this user", "password authentication failed")
    refused(locked, "asks for a password, and there is none", "passfile=")
    refused(url.replace("/postgres?", "/nowhere?"), "The database nowhere on", "does not exist", "Create it")

    fixture.run("users", "import", "-", stdin="")
    refused(stranger, "stranger cannot use the schema", "GRANT USAGE, CREATE ON SCHEMA refresh_worker TO stranger")
    doctor_advises(fixture, stranger, "stranger cannot use them", "GRANT USAGE, CREATE ON SCHEMA")
    server.execute("GRANT USAGE ON SCHEMA refresh_worker TO stranger")
    refused(stranger, "lacks a permission", "GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO")
    doctor_advises(fixture, stranger, "stranger cannot use them", "GRANT ALL ON ALL TABLES")
    version = server.query("SELECT version FROM refresh_worker.schema_version")[0]["version"]
    server.execute(f"UPDATE refresh_worker.schema_version SET version = {version + 1}")
    refused(url, f"schema version {version + 1}", f"up to {version}", "Upgrade refresh-worker")
    server.execute(f"UPDATE refresh_worker.schema_version SET version = {version}")


def doctor_advises(fixture, database, *words):
    """The doctor reports the same problem, and what to do."""
    fixture.database, former = database, fixture.database
    # The doctor's made-up token would count as a spent one.
    output = fixture.run("doctor", "--token-endpoint", fixture.sandbox.url + "/nothing", expect=78).stdout
    fixture.database = former
    for word in words:
        assert word in output, f"the doctor says {word!r}"
