"""The commands of an operator beside a running worker: they list, retry, correct and delete what it works on."""

import contextlib
import json
import os
import pty
import subprocess
import time

from accounts import Accounts, user_token
from expectations import wait_for
from harness import CLIENT

WRONG = "999-other.apps.googleusercontent.com"
HOUR = 3_600_000


def scenario(fixture):
    accounts = Accounts(fixture)
    fixture.sandbox.settings(lifetime=3600, clients=[CLIENT, WRONG])
    retries(fixture)
    lists(fixture)
    corrects_the_client(fixture, accounts)
    deletes(fixture, accounts)
    agrees_too_late(fixture, accounts)
    assert not [
        event for event in accounts.worker.events("alarm") if event["kind"] not in ("client_unproven", "grant_refused")
    ], "the commands cause no other alarm"
    watches(fixture, accounts)
    no_token_shows(fixture)
    vends(fixture)
    checks(fixture)
    rotates_keys(fixture)
    accounts.close()
    copies(fixture)
    return ""


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def postpone(fixture, *users):
    """Moves due times, as a long back-off or a daily probe would."""
    for user in users:
        fixture.set_due(int(time.time() * 1000) + HOUR, user)


def refreshes(fixture, user):
    return fixture.workers[-1].events("refresh", grant=f"{fixture.grants()[user]['id']:016x}")


def is_active(fixture, user):
    return fixture.grants()[user]["state"] == "active"


def retries(fixture):
    sandbox = fixture.sandbox
    grants = [sandbox.create_expired(f"{name}@example.com") for name in ("ada", "bob", "cat", "dan")]
    answers = ["internal_failure_503", "internal_failure_503", "admin_policy_enforced"]
    for grant, answer in zip(grants[:3], answers, strict=True):
        sandbox.change(grant, answer={"preset": answer})
    fixture.import_grants(grants)
    ada, bob, cat, dan = (grant["email"] for grant in grants)
    wanted = {ada: "retrying", bob: "retrying", cat: "suspended", dan: "active"}
    wait_for(
        lambda: {user: row["state"] for user, row in fixture.grants().items()} == wanted
        and fixture.grants()[dan]["is_proven"],
        60,
        "two grants are retrying, one is suspended and one is refreshed",
    )
    postpone(fixture, ada, bob, cat)
    for grant in grants:
        sandbox.change(grant, answer=None)

    tries = len(refreshes(fixture, ada))
    assert fixture.run("grants", "retry", ada).stdout == "1 grant is due now\n", "the user's grant is due"
    wait_for(lambda: is_active(fixture, ada), 60, "the worker finds the new due time")
    late = wait_for(lambda: refreshes(fixture, ada)[tries:], 60, "the try has its line")[0]["lateness_ms"]
    assert late < 10_000, "the worker finds the new due time with its next scan"
    assert not is_active(fixture, bob), "no other grant is tried"

    assert lines(fixture.run("grants", "retry", "--state", "retrying", "--json"))[0]["due"] == 1, "one is retrying"
    wait_for(lambda: is_active(fixture, bob), 60, "the retrying grant is tried")
    assert not is_active(fixture, cat), "the suspended grant waits for its probe"
    assert fixture.run("grants", "retry", "--client", CLIENT).stdout == "1 grant is due now\n", "one is suspended"
    wait_for(lambda: is_active(fixture, cat), 60, "the suspended grant is tried")

    # A grant in flight stays; one that ended does too.
    sandbox.change(grants[3], hold=True)
    fixture.set_due(int(time.time() * 1000), dan)
    sandbox.call("/control/wait?holding=1")
    held = fixture.run("grants", "retry", dan).stdout
    assert "0 grants are due now" in held and "1 being refreshed at this moment" in held, "a grant in flight stays"
    sandbox.call("/control/release", {})
    wait_for(lambda: fixture.grants()[dan]["lease_owner"] is None, 60, "the held request has its answer")
    sandbox.change(grants[3], revoked=True)
    fixture.set_due(int(time.time() * 1000), dan)
    wait_for(lambda: fixture.grants()[dan]["state"] == "disconnected", 60, "the revoked grant ends")
    refused = fixture.run("grants", "retry", dan, expect=77).stderr
    assert f"the grant of user '{dan}' is disconnected (invalid_grant): the user must sign in again" in refused, (
        "an ended grant is not tried again"
    )
    unknown = fixture.run("grants", "retry", "eve", expect=67).stderr
    assert unknown == "refresh-worker: no grant of user 'eve' is stored\n", "the error names the user once"


def lists(fixture):
    every = lines(fixture.run("grants", "list", "--json", "--sort", "user"))
    assert [grant["user_id"].split("@")[0] for grant in every] == ["ada", "bob", "cat", "dan"], "the list is sorted"
    due = lines(fixture.run("grants", "list", "--json", "--sort", "due", "--limit", "2", "--client", CLIENT))
    assert len(due) == 2 and due[0]["due_at"] <= due[1]["due_at"], "the list has a limit"
    ended = lines(fixture.run("grants", "list", "--json", "--reason", "invalid_grant"))
    assert [grant["user_id"] for grant in ended] == ["dan@example.com"], "the list has grants of one reason"
    assert "no stored grant fits" in fixture.run("grants", "list", "--expired").stderr, "no connected grant has expired"
    assert "dan@example.com" in fixture.run("grants", "list", "--state", "disconnected").stdout, "the list has a state"

    found = lines(fixture.run("grants", "list", "--json", "--email", "ADA@Example.com"))
    assert [grant["user_id"] for grant in found] == ["ada@example.com"], "a grant is found by its e-mail address"
    recent = lines(fixture.run("grants", "list", "--json", "--since", "1h", "--sort", "since", "--limit", "9"))
    assert len(recent) == 4, "every grant came into its state in the last hour"
    words = ["--email", "ada@example.com", "--state", "disconnected"]
    assert "no stored grant fits" in fixture.run("grants", "list", *words).stderr, "the options are combined"

    events = lines(fixture.run("grants", "history", "dan@example.com", "--json"))
    assert [event["to"] for event in events] == ["disconnected", "active"], "the history begins with the latest event"
    assert "disconnected, invalid_grant" in fixture.run("grants", "history", "dan@example.com").stdout, (
        "the history names the reason"
    )
    fixture.run("grants", "history", "eve", expect=67)


def corrects_the_client(fixture, accounts):
    """Grants that were imported with the wrong client id, as in the alarm `client_unproven`."""
    sandbox = fixture.sandbox
    grants = [sandbox.create_expired(f"moved{number}@example.com") for number in range(5)]
    sandbox.change(grants[4], hold=True)
    fixture.import_grants(grants, "--client-id", WRONG, client_id=WRONG)
    users = {grant["email"] for grant in grants}
    wait_for(
        lambda: [fixture.grants()[user]["reason"] for user in users].count("client_mismatch_unconfirmed") == 4,
        60,
        "Google refuses the wrong client id",
    )
    alarm = wait_for(lambda: accounts.worker.events("alarm", kind="client_unproven"), 60, "an alarm is logged")[0]
    assert f"grants set-client --from {WRONG} --to ID" in alarm["text"], "the alarm names the command"
    refused = fixture.run("grants", "set-client", "--from", CLIENT, "--to", WRONG, expect=78).stderr
    assert f"the client id '{WRONG}' is not configured" in refused, "the new client id must be configured"

    words = ["grants", "set-client", "--from", WRONG, "--to", CLIENT]
    first = lines(fixture.run(*words, "--json", expect=75))[0]
    assert first == {"moved": 4, "due": 4, "in_flight": 1}, "the grant in flight stays"
    wait_for(lambda: sum(is_active(fixture, user) for user in users) == 4, 60, "the moved grants are refreshed")
    sandbox.call("/control/release", {})
    held = grants[4]["email"]
    wait_for(lambda: fixture.grants()[held]["reason"] == "client_mismatch_unconfirmed", 60, "the last one is refused")
    assert "1 grant was moved" in fixture.run(*words).stdout, "the command can be repeated"
    wait_for(lambda: is_active(fixture, held), 60, "the last grant is refreshed")
    assert "0 grants were moved" in fixture.run(*words).stdout, "no grant of the wrong client id is left"


def deletes(fixture, accounts):
    grant = fixture.sandbox.create(email="zoe@gmail.com", name="Zoe")[0]
    pair = accounts.sign_in(grant)
    user = accounts.public.get("/api/auth/me", pair["access_token"]).expect(200).json["id"]
    accounts.connect(grant, pair["access_token"]).expect(201)

    listed = lines(fixture.run("users", "list", "--json"))
    assert [entry["user_id"] for entry in listed] == sorted(entry["user_id"] for entry in listed), "users are sorted"
    assert len(listed) == 10 and user in [entry["user_id"] for entry in listed], "every user is listed"
    assert "zoe@gmail.com" in fixture.run("users", "list").stdout, "the table shows the e-mail address"
    shown = lines(fixture.run("users", "show", user, "--json"))[0]
    assert shown["name"] == "Zoe" and shown["grant"]["state"] == "active", "a user is shown with the grant"
    assert "zoe@gmail.com, verified" in fixture.run("users", "show", user).stdout, "a user is shown as text"
    fixture.run("users", "show", "eve", expect=67)
    found = lines(fixture.run("users", "list", "--json", "--email", "ZOE@gmail.com", "--state", "active"))
    assert [entry["user_id"] for entry in found] == [user], "a user is found by the e-mail address"
    assert len(lines(fixture.run("users", "list", "--json", "--limit", "2"))) == 2, "the list has a limit"
    assert "no stored user fits" in fixture.run("users", "list", "--state", "deleted").stderr, "nobody is deleted"

    planned = lines(fixture.run("users", "delete", user, "--json", "--dry-run"))[0]
    assert planned == {"user_id": user, "ended_sessions": 1, "revocation": "pending"}, "a dry run says what it would do"
    asked = on_terminal(fixture, "n\n", "users", "delete", user, expect=130)
    assert f"This will delete user '{user}' and 1 session, and end the grant here and revoke it at Google." in asked, (
        "on a terminal the command asks"
    )
    assert "nothing was changed" in asked, "the answer no changes nothing"
    accounts.public.get("/api/auth/me", pair["access_token"]).expect(200)

    words = ["--notice-url", accounts.backend.url, "--notice-secret-file", fixture.folder / "notice"]
    deleted = lines(fixture.run("users", "delete", user, "--json", *words))[0]
    assert deleted == {"user_id": user, "ended_sessions": 1, "revocation": "done"}, "the user's grant is revoked"
    assert fixture.sandbox.stats()["by_route"].get("revoke") == 1, "Google gets one revocation"
    accounts.public.get("/api/auth/me", pair["access_token"]).expect(401)
    notices = accounts.backend.wait_for(user, 2)
    assert [notice["type"] for notice in notices] == ["grant.disconnected", "user.deleted"], "the backend is notified"
    assert lines(fixture.run("users", "show", user, "--json"))[0]["deleted_until"], "a tombstone is left"
    deleted = lines(fixture.run("users", "list", "--json", "--state", "deleted"))
    assert [entry["user_id"] for entry in deleted] == [user], "the list has a state"
    again = fixture.run("users", "delete", user, expect=67).stderr
    assert again.count(user) == 1, "the error names the user once"
    bearer = user_token(user)
    assert accounts.connect(grant, bearer).status == 404, "the id is refused"

    ended = "moved0@example.com"
    would = "would end the grant of user 'moved0@example.com' here and revoke it at Google\n"
    assert fixture.run("grants", "disconnect", ended, "--dry-run").stdout == would, "a dry run says what would be done"
    assert is_active(fixture, ended), "a dry run changes nothing"
    on_terminal(fixture, "yes\n", "grants", "disconnect", ended)
    assert fixture.grants()[ended]["state"] == "disconnected", "the answer yes ends the grant"
    assert "[y/N]" not in on_terminal(fixture, "", "grants", "disconnect", ended, "--yes"), "--yes asks nothing"


def agrees_too_late(fixture, accounts):
    """A person agrees to what was shown, and not to what came since."""
    grant = fixture.sandbox.create(email="amy@example.com")[0]
    user = grant["email"]
    fixture.import_grants([grant])
    asked = Question(fixture, "grants", "disconnect", user)
    fresh = fixture.sandbox.create(email=user, sub=grant["sub"])[0]
    fixture.import_grants([fresh], "--replace")
    told = asked.answer("yes\n", expect=75)
    assert f"nothing was changed, because the grant of user '{user}' has another refresh token" in told, told
    asked = Question(fixture, "users", "delete", user)
    fixture.run("grants", "disconnect", user)
    told = asked.answer("yes\n", expect=75)
    assert "was active, since" in told and "and is disconnected, user_request, since" in told, told

    grant = fixture.sandbox.create(email="ann@gmail.com")[0]
    first = accounts.sign_in(grant)
    user = accounts.public.get("/api/auth/me", first["access_token"]).expect(200).json["id"]
    asked = Question(fixture, "users", "delete", user)
    second = accounts.sign_in(grant)
    told = asked.answer("yes\n", expect=75)
    assert f"would now delete user '{user}' and 2 sessions" in told, told
    for pair in (first, second):
        accounts.public.get("/api/auth/me", pair["access_token"]).expect(200)


class Question:
    """A command on a terminal that has asked and waits."""

    def __init__(self, fixture, *words):
        self.leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            fixture.arguments(*words), stdin=follower, stdout=follower, stderr=follower, env=fixture.environment
        )
        os.close(follower)
        seen = ""
        while "[y/N]" not in seen:
            seen += os.read(self.leader, 65536).decode()

    def answer(self, text, expect):
        os.write(self.leader, text.encode())
        assert self.process.wait(timeout=60) == expect, f"the command exits with {expect}"
        return everything(self.leader)


def on_terminal(fixture, answer, *words, expect=0):
    """Runs a command on a terminal, where a person types the answer; returns what the person sees."""
    leader, follower = pty.openpty()
    os.write(leader, answer.encode())
    process = subprocess.Popen(
        fixture.arguments(*words), stdin=follower, stdout=follower, stderr=follower, env=fixture.environment
    )
    os.close(follower)
    assert process.wait(timeout=60) == expect, f"{words} exits with {expect}"
    return everything(leader)


def everything(leader):
    """What a terminal shows until its command has ended: the echo of the answer can come alone."""
    seen = b""
    # EIO: nobody has the other side open.
    with contextlib.suppress(OSError):
        while True:
            seen += os.read(leader, 65536)
    os.close(leader)
    return seen.decode()


def vends(fixture):
    """The command has the fields of the route."""
    answer = lines(fixture.run("token", "bob@example.com", "--json"))[0]
    assert answer["access_token"] == fixture.run("token", "bob@example.com").stdout.strip(), "it is the stored token"
    assert answer["token_type"] == "Bearer" and 60 <= answer["expires_in"] <= 3600, "the token lives as long as asked"
    assert answer["granted_scopes"] and answer["expires_at"].endswith("Z") and answer["warning"] is None, (
        "the other fields are those of the route"
    )


def checks(fixture):
    version = lines(fixture.run("--version", "--json"))[0]
    assert f"refresh-worker {version['version']}" in fixture.run("--version").stdout, "both have the same version"
    assert "libcurl" in version["libraries"], "the libraries are named"
    result = fixture.run("doctor", "--json", expect=None)
    report = lines(result)[0]
    names = [check["name"] for check in report["checks"]]
    assert "key ring" in names and "clock" in names, f"each check has a name: {names}"
    assert {check["result"] for check in report["checks"]} <= {"ok", "warning", "fault"}, "each check has a result"
    assert (result.returncode == 0) == (report["faults"] == 0), "the exit code is that of the text"
    wrong = fixture.folder / "none"
    faulty = lines(fixture.run("doctor", "--json", "--key-file", wrong, expect=78))[0]
    ring = next(check for check in faulty["checks"] if check["name"] == "key ring")
    assert ring["result"] == "fault" and str(wrong) in ring["text"], "a fault names the file"


def rotates_keys(fixture):
    other = fixture.folder / "other-keys"
    made = lines(fixture.run("keys", "generate", "--lost", "--json", "--key-file", other))[0]
    assert made["file"] == str(other) and f"\n{made['key']} " in "\n" + other.read_text(), "the new ring is described"
    former = lines(fixture.run("keys", "list", "--json"))[0]["key"]
    rotated = fixture.run("keys", "rotate", "--json")
    outcome = lines(rotated)[0]
    assert "added key" in rotated.stderr, "the progress is on standard error"
    assert outcome["resealed"] > 0 and outcome["remaining_tokens"] == 0, "all tokens are sealed again"
    assert outcome["retirable_keys"] == [former] and outcome["sealing_key"] != former, "the former key is not needed"
    retired = lines(fixture.run("keys", "retire", former, "--json"))[0]
    assert retired["key"] == former and retired["result"] == "retired", "the former key is retired"
    assert retired["removable_at"].endswith("Z"), "the time of its removal is known"


def copies(fixture):
    if fixture.server:
        return
    target = fixture.folder / "copy.sqlite"
    copied = lines(fixture.run("store", "copy", "--from", fixture.database, "--to", target, "--json"))[0]
    assert copied["to"] == str(target) and copied["records"] == copied["copied_now"] > 0, "all records are copied"
    assert copied["records_by_kind"]["grant"] == len(fixture.grants()), "each kind is counted"
    assert len(copied["sha256"]) == 64, "the checksum is that of both databases"


def no_token_shows(fixture):
    printed = (fixture.folder / "commands.log").read_text()
    for grant in fixture.sandbox.call("/control/grants"):
        assert grant["refresh_token"] not in printed, "no command prints a refresh token"
    assert "ya29." not in printed, "no command prints an access token"


def read_until(watch, text):
    line = watch.stdout.readline()
    while text not in line:
        assert line, f"the watch writes {text!r}"
        line = watch.stdout.readline()


def watches(fixture, accounts):
    """In a pipe, `status --watch` writes a line for each change, beside the worker."""
    sandbox = fixture.sandbox
    grant = sandbox.create_expired("wat@example.com")
    watch = subprocess.Popen(
        fixture.arguments("status", "--watch"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=fixture.environment,
    )
    try:
        first = watch.stdout.readline()
        assert "grants: " in first, "the watch begins with all facts"
        before = int(first.split(" active")[0].split()[-1])
        fixture.import_grants([grant])
        read_until(watch, f"grants: {before + 1} active")
        if fixture.server:
            fixture.server.stop()
            accounts.worker.kill()
            fixture.server.start()
            read_until(watch, "workers: none running")
    finally:
        watch.kill()
        watch.wait(timeout=60)
        watch.stdout.close()
