"""A worker that is suspended while its database is copied ends with 78 when it continues, and spills the answers it
received."""

import json
import signal

from expectations import wait_for

GRANTS = 8


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600, rotation=True, strict_rotation=True)
    fixture.generate_keys()
    grants = [sandbox.create_expired(f"user{number}@example.com") for number in range(GRANTS)]
    for grant in grants:
        sandbox.change(grant, hold=True)
    fixture.import_grants(grants)
    suspended = fixture.start().wait_started()
    sandbox.call(f"/control/wait?holding={GRANTS}")
    fixture.suspend_between_transactions(suspended)
    for grant in grants:
        sandbox.call("/control/release", {"email": grant["email"]})
    former, new = fixture.database, fixture.folder / "new.sqlite"

    def is_copied():
        # The copy refuses until the suspended worker counts as dead.
        return fixture.run("store", "copy", "--from", former, "--to", new, expect=None).returncode == 0

    wait_for(is_copied, 90, "the database is copied", pause=2)
    fixture.database = new
    worker = fixture.start().wait_started()
    # The tokens that the suspended worker's requests spent are refused, as expected.
    wait_for(lambda: sandbox.stats()["by_answer"].get("invalid_grant", 0) > 0, 60, "the new worker asks as well")
    suspended.signal(signal.SIGCONT)
    code = suspended.process.wait(timeout=60)
    output = suspended.errors.read_text()
    assert code == 78, f"the suspended worker stops at its copied database; it wrote: {output}"
    assert str(new) in output and "results recover" in output, (
        "the suspended worker names the new database and the recovery of its results"
    )
    spills = list(fixture.folder.glob("grants.sqlite.unsaved-*"))
    assert len(spills) == 1, "the results go to one spill file"
    recovered = json.loads(fixture.run("results", "recover", spills[0], "--json").stdout)
    assert recovered == {"file": str(spills[0]), "stored": GRANTS, "outdated": 0, "unknown": 0}, "all are stored"
    assert not spills[0].exists(), "the spill file is removed once its results are stored"
    wait_for(lambda: fixture.states() == {"active": GRANTS}, 60, "every grant stays active")
    for grant in grants:
        # Strict rotation: only the rotated token still works.
        fixture.run("token", grant["email"], "--min-ttl", "7200")
    worker.stop()
    return f"{GRANTS} answers were handed over to the new database"
