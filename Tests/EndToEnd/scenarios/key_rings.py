"""Wrong key rings: a foreign ring in the file, and a ring that lacks the key with which other workers seal."""

import json
import shutil

from accounts import UnixConnection
from expectations import wait_for

GRANTS = 20
REFUSED = 78


def scenario(fixture):
    fixture.sandbox.settings(lifetime=3600, rotation=True, strict_rotation=True)
    fixture.generate_keys()
    users = [fixture.sandbox.create_expired(f"user{number}@example.com") for number in range(GRANTS)]
    fixture.import_grants(users)
    right = fixture.keys
    foreign_ring(fixture, right, fixture.folder / "foreign")
    missing_ring(fixture, right)
    lacking_ring(fixture, right, fixture.folder / "stale")
    lost_ring(fixture, right)
    return ""


def foreign_ring(fixture, right, foreign):
    """The file is replaced while the worker runs, and put back: every token can be opened at all times."""
    worker = fixture.start().wait_started()
    wait_for(lambda: refreshed(worker) >= GRANTS, 60, "all grants are refreshed with the right ring")
    fixture.keys = foreign
    fixture.generate_keys()
    kept = fixture.folder / "kept"
    shutil.copy2(right, kept)
    replace(foreign, right)
    wait_for(lambda: worker.events("alarm", kind="key_ring_refused"), 60, "the foreign ring raises an alarm")
    fixture.set_due(0)
    wait_for(lambda: refreshed(worker) >= 2 * GRANTS, 60, "the worker continues with the keys in memory")
    # The command reads the file.
    fixture.run("--run-once", expect=REFUSED)
    replace(kept, right)
    fixture.keys = right
    expect_all_open(fixture)
    worker.stop()

    fixture.keys = foreign
    daemon = fixture.start()
    code = daemon.process.wait(timeout=60)
    assert code == REFUSED, "a worker with a foreign ring does not start"
    assert "is not the one that sealed" in daemon.errors.read_text(), (
        "the worker says that another ring sealed the tokens"
    )
    fixture.keys = right


def missing_ring(fixture, right):
    """The file disappears while the worker runs: an alarm, and no harm until a restart."""
    internal = fixture.folder / "internal"
    worker = fixture.start("--listen-internal", f"unix:{internal}").wait_started()
    kept = fixture.folder / "kept"
    right.rename(kept)
    wait_for(lambda: worker.events("alarm", kind="key_file_unreadable"), 60, "the missing file raises an alarm")
    assert readiness(internal) == (200, "file_unreadable"), "the worker is ready, and says that the file is missing"
    before = refreshed(worker)
    fixture.set_due(0)
    wait_for(lambda: refreshed(worker) >= before + GRANTS, 60, "the worker continues with the keys in memory")
    assert "restore it from its copy" in fixture.run("keys", "list", expect=REFUSED).stderr, "the advice is the copy"
    kept.rename(right)
    wait_for(lambda: readiness(internal) == (200, "ok"), 60, "the worker finds the file again")
    worker.stop()


def readiness(socket):
    connection = UnixConnection(socket)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())["checks"]["key_ring"]


def lost_ring(fixture, right):
    """Without any copy, the users of the lost keys can be listed."""
    lost = [json.loads(line)["key"] for line in fixture.run("keys", "list", "--json").stdout.splitlines()]
    right.unlink()
    assert "tokens that need key" in fixture.run("keys", "generate", expect=73).stderr, "it looks into the database"
    fixture.run("keys", "generate", "--lost")
    for key in lost:
        fixture.run("keys", "retire", key, "--lost")
    fixture.import_grants([fixture.sandbox.create_expired("new@example.com")])
    listed = fixture.run("grants", "list", "--unreadable", "--json").stdout.splitlines()
    assert len(listed) == GRANTS and "new@example.com" not in "".join(listed), "only users of the lost key are listed"


def lacking_ring(fixture, right, stale):
    """A second worker with a ring from before a rotation changes nothing until it has the new ring."""
    shutil.copy2(right, stale)
    fixture.run("keys", "rotate")
    holder = fixture.start().wait_started()
    fixture.keys = stale
    lacking = fixture.start().wait_started()
    fixture.keys = right
    wait_for(lambda: lacking.events("alarm", kind="key_ring_lacks_keys"), 60, "the stale ring raises an alarm")
    fixture.set_due(0)
    wait_for(lambda: refreshed(holder) >= GRANTS, 20, "the other worker refreshes all of them, without waiting")
    assert not lacking.events("refresh"), "the worker with the stale ring tries no refresh"
    postponed = [row["user_id"] for row in fixture.rows() if row["attempts"] or row["state"] != "active"]
    assert not postponed, "no grant is postponed"
    expect_all_open(fixture)

    replace(right, stale)
    wait_for(lambda: "refreshes" in notices(lacking), 60, "the worker takes the ring when it is right")
    wait_for(lambda: has_share(fixture, lacking), 60, "the second worker has its share", pause=1)
    expect_all_open(fixture)
    holder.stop()
    lacking.stop()


def has_share(fixture, worker):
    """Makes every grant due; the other worker takes its share only after its next report."""
    fixture.set_due(0)
    return refreshed(worker) > 0


def refreshed(worker):
    return len(worker.events("refresh", outcome="refreshed"))


def notices(worker):
    return "".join(line for line in worker.errors.read_text().splitlines() if "holds every key again" in line)


def replace(source, target):
    copy = target.with_suffix(".copy")
    shutil.copy2(source, copy)
    copy.replace(target)


def expect_all_open(fixture):
    lines = fixture.run("grants", "export", "--plaintext").stdout.splitlines()
    tokens = [json.loads(line).get("refresh_token") for line in lines]
    assert len(tokens) == GRANTS and all(tokens), "every token can be opened"
