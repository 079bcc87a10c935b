"""A Cloud project in testing is reported, the backend is warned of each token's end, and ended grants are forgotten."""

import calendar
import json
import time

from accounts import Accounts, user_token
from expectations import wait_for
from harness import CLIENT

SERVER = "1234-server.apps.googleusercontent.com"
SECRET = "GOCSPX-the-secret-of-the-server"
WEEK = 7 * 86400
KIND = "project_in_testing"
SENTENCE = f"refresh tokens of client '{SERVER}' end seven days after the consent: publish the OAuth app"


def scenario(fixture):
    fixture.sandbox.settings(clients=[CLIENT, SERVER])
    accounts = Accounts(fixture, "--summary-interval", "1", "--expiry-notice", "7", start=False)
    accounts.extra += [
        "--server-client-id", SERVER, "--client-secret-file", accounts.write("client-secrets", f"{SERVER} {SECRET}"),
    ]
    accounts.start()
    reported(fixture, accounts)
    announced(fixture, accounts)
    forgotten(fixture, accounts)
    accounts.close()
    return ""


def connect(accounts, user):
    """A new consent of a user, whose code the worker exchanges; returns the connection that the profile then shows."""
    email = f"{user}@example.com"
    own = accounts.sandbox.create(email=email, sub=user, client_id=CLIENT)[0]
    body = {"email": email, "sub": user, "client_id": SERVER, "client_secret": SECRET}
    code = accounts.sandbox.call("/control/codes", body)["code"]
    body = {"access_token": own["access_token"], "server_auth_code": code}
    accounts.public.post("/v1/auth/gmail-tokens", body, user_token(user)).expect(201)
    return accounts.connection(user_token(user))


def is_in_a_week(text):
    end = calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    return abs(end - time.time() - WEEK) < 120


def concerns(fixture, accounts):
    report = json.loads(fixture.run("status", "--json", *accounts.extra).stdout)
    return [concern for concern in report["concerns"] if concern["kind"] == KIND]


def reported(fixture, accounts):
    """Google says that a new token lives for seven days: alarm, status and doctor report it."""
    assert connect(accounts, "ada")["expires_at"] is None, "a token without an end of its own has none in the profile"
    assert not concerns(fixture, accounts), "a published project is no concern"
    accounts.sandbox.settings(refresh_token_expires_in=WEEK)
    assert is_in_a_week(connect(accounts, "bob")["expires_at"]), "the profile shows the token's end"
    alarm = wait_for(lambda: accounts.worker.events("alarm", kind=KIND), 60, "the worker raises the alarm")[0]
    assert (alarm["text"], alarm["client"]) == (SENTENCE, SERVER), "the alarm says what to do, and for which client"
    found = concerns(fixture, accounts)
    assert [concern["text"] for concern in found] == [SENTENCE], "status says the same, once"
    assert found[0]["severity"] == "tomorrow", "a person should look within a day"
    assert SENTENCE in fixture.run("doctor", *accounts.extra, expect=None).stdout, "doctor says the same"


def announced(fixture, accounts):
    """One notice for each refresh token, whichever worker looks, and none for a token that was replaced meanwhile."""
    accounts.worker.stop()
    second = fixture.start(
        "--notice-url", accounts.backend.url, "--notice-secret-file", fixture.folder / "notice", "--expiry-notice", "7"
    )
    # Both look for tokens to announce when they start.
    accounts.start()
    notice = accounts.backend.wait_for("bob", 1)[0]
    assert notice["type"] == "grant.expiring", "the notice says that the grant expires"
    assert is_in_a_week(notice["data"]["expires_at"]), "it names the end"
    second.wait_started().stop()

    connect(accounts, "carl")
    accounts.worker.stop()
    # All the while: on a busy machine the notice could be sent again before the token is replaced.
    accounts.backend.refusals = 1_000_000
    accounts.start()
    wait_for(lambda: accounts.worker.events("notice", outcome="postponed"), 60, "the backend refuses the notice")
    accounts.sandbox.settings(refresh_token_expires_in=None)
    connect(accounts, "carl")
    accounts.backend.refusals = 0
    pending = "SELECT number FROM notices WHERE accepted_at IS NULL AND given_up_at IS NULL"
    wait_for(lambda: not fixture.rows(pending), 60, "the outbox is empty")
    assert not accounts.backend.of("carl"), "a replaced token is not announced"
    assert len(accounts.backend.of("bob")) == 1, "each token is announced once"


def forgotten(fixture, accounts):
    """A grant that ends is shown with its age, and is forgotten days later, with the address of its user."""
    connect(accounts, "dan")
    consent = int((time.time() - WEEK - 1800) * 1000)
    fixture.write("UPDATE grants SET refresh_consented_at = ? WHERE user_id = ?", consent, "dan")
    accounts.sandbox.call("/control/grants/set", {"email": "dan@example.com", "revoked": True})
    accounts.expire("dan")
    accounts.vend("dan").expect(409)
    report = fixture.run("doctor", *accounts.extra, expect=None).stdout
    assert f"client '{SERVER}': 1 in the last 30 days" in report and "first: 7.0" in report, (
        "doctor shows at which ages grants were lost"
    )
    fixture.write("UPDATE grants SET since = since - ? WHERE user_id = ?", 10 * 86_400_000, "dan")

    arguments = ["users", "forget", "--forget-ended-after", "9"]
    listed = fixture.run(*arguments, "--dry-run", "--json").stdout.splitlines()
    assert [json.loads(line)["user_id"] for line in listed] == ["dan"], "the dry run lists the user"
    shown = json.loads(fixture.run("users", "show", "dan", "--json").stdout)
    assert shown["email"] == "dan@paypulse.example", "the dry run changes nothing"
    accounts.backend.wait_for("dan", 1)
    # A worker with this setting waits for an hour.
    fixture.run(*arguments)
    assert fixture.grants()["dan"]["reason"] == "forgotten", "the grant is forgotten"
    shown = json.loads(fixture.run("users", "show", "dan", "--json").stdout)
    assert (shown["email"], shown["name"], shown["google_user_id"]) == (None, None, None), "the user is forgotten too"
    grant = fixture.grants()["dan"]
    assert (grant["email"], grant["name"], grant["refresh_token"]) == (None, None, None), "nothing identifies the user"
    assert fixture.grants()["ada"]["email"] == "ada@example.com", "the grants that live stay"
    assert not fixture.run(*arguments, "--dry-run", "--json").stdout, "nothing is left to forget"
    assert len(accounts.backend.of("dan")) == 1, "the backend gets no notice of it"
    connect(accounts, "dan")
    assert accounts.is_connected(user_token("dan")), "the user can connect again"
