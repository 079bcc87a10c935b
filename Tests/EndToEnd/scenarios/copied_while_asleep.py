"""A worker that is suspended while its database is copied ends with 78 when it wakes, and spills the answers it
received."""

import signal

from expectations import wait_for

GRANTS = 8


def scenario(place):
    sandbox = place.sandbox
    sandbox.settings(lifetime=3600, rotation=True, strict_rotation=True)
    place.generate_keys()
    grants = [sandbox.create_expired(f"user{number}@example.com") for number in range(GRANTS)]
    for grant in grants:
        sandbox.change(grant, hold=True)
    place.bring_in(grants)
    sleeper = place.start().wait_started()
    sandbox.call(f"/control/wait?holding={GRANTS}")
    sleeper.signal(signal.SIGSTOP)
    for grant in grants:
        sandbox.call("/control/release", {"email": grant["email"]})
    former, new = place.database, place.folder / "new.sqlite"

    def is_copied():
        # The copy refuses until the suspended worker counts as dead.
        return place.run("store", "copy", "--from", former, "--to", new, expect=None).returncode == 0

    wait_for(is_copied, 90, "the database is copied", pause=2)
    place.database = new
    worker = place.start().wait_started()
    # The tokens that the suspended worker's requests spent are refused, as expected.
    wait_for(lambda: sandbox.stats()["by_answer"].get("invalid_grant", 0) > 0, 30, "the new place asks as well")
    sleeper.signal(signal.SIGCONT)
    code = sleeper.process.wait(timeout=60)
    said = sleeper.errors.read_text()
    assert code == 78, f"the sleeper stops at its copied database; it wrote: {said}"
    assert str(new) in said and "results recover" in said, (
        "the sleeper names the new database and the recovery of its results"
    )
    spills = list(place.folder.glob("grants.sqlite.unsaved-*"))
    assert len(spills) == 1, "the results go to one spill file"
    place.run("results", "recover", spills[0])
    assert not spills[0].exists(), "the spill file is removed once its results are stored"
    wait_for(lambda: place.states() == {"active": GRANTS}, 20, "every grant stays active")
    for grant in grants:
        # Strict rotation: only the rotated token still works.
        place.run("token", grant["email"], "--min-ttl", "7200")
    worker.stop()
    return f"{GRANTS} answers were handed over to the new place"
