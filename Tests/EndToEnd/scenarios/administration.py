"""A backend manages grants and users over HTTP: the routes do what the commands do, and the audit has each request."""

import hashlib
import json

from accounts import Accounts, user_token
from expectations import wait_for
from harness import import_line

MANAGER = "backend-credential-of-32-bytes-or-more"
HELPER = "helper-credential-of-32-bytes-or-more!"


def entry(name, key, users):
    return {
        "name": name, "credential_sha256": hashlib.sha256(key.encode()).hexdigest(), "users": users, "manage": True
    }


def scenario(fixture):
    services = [entry("backend", MANAGER, ["*"]), entry("helper", HELPER, ["ada", "nobody"])]
    accounts = Accounts(fixture, services=services)
    fixture.sandbox.settings(lifetime=3600)
    secrets = stores(fixture, accounts)
    lists(fixture, accounts)
    repeats(fixture, accounts)
    tries_again(fixture, accounts)
    ends(fixture, accounts)
    deletes(fixture, accounts)
    audits(accounts)
    accounts.close()
    for log in [*fixture.folder.glob("*.log"), *fixture.folder.glob("*.jsonl")]:
        text = log.read_text(errors="replace")
        assert not [secret for secret in [*secrets, MANAGER] if secret in text], f"{log.name} shows no secret"
    return f"{len(accounts.worker.events('manage'))} lines of the audit"


def manage(accounts, method, path, body=None, bearer=MANAGER):
    return accounts.internal.call(method, path, body, bearer)


def stores(fixture, accounts):
    """A grant is stored, and refreshed at once because its access token has expired; a second record replaces it."""
    grant = fixture.sandbox.create_expired("ada@example.com")
    record = import_line(grant, user_id="ada")
    answer = manage(accounts, "PUT", "/v1/grants/ada", record).expect(201).json
    assert (answer["result"], answer["user_id"], answer["state"]) == ("added", "ada", "active"), "it is stored"
    worker = accounts.worker
    wait_for(lambda: worker.events("refresh", grant=answer["grant"], outcome="refreshed"), 60, "it is refreshed")
    shown = manage(accounts, "GET", "/v1/grants/ada").expect(200).json
    assert shown == json.loads(fixture.run("grants", "show", "ada", "--json").stdout), "the command shows the same"
    fresh = fixture.sandbox.create(email="ada@example.com", sub=grant["sub"])[0]
    answer = manage(accounts, "PUT", "/v1/grants/ada", import_line(fresh, user_id="ada")).expect(200).json
    assert (answer["result"], answer["generation"]) == ("replaced", shown["generation"] + 1), "it is replaced"
    manage(accounts, "PUT", "/v1/grants/bob", record).expect(400)
    manage(accounts, "PUT", "/v1/grants/bob", "no JSON").expect(400)
    assert list(fixture.grants()) == ["ada"], "a wrong record stores nothing"
    return [one[name] for one in (grant, fresh) for name in ("access_token", "refresh_token")]


def lists(fixture, accounts):
    """Pages have each grant once; a service sees only its own users, and nothing about others."""
    others = fixture.sandbox.create(count=4)
    fixture.import_grants(others)
    listed, path = [], "/v1/grants?limit=2"
    while path:
        page = manage(accounts, "GET", path).expect(200).json
        listed += page["grants"]
        path = page["next"] and f"/v1/grants?limit=2&after={page['next']}"
    printed = [json.loads(line) for line in fixture.run("grants", "list", "--json").stdout.splitlines()]
    assert listed == printed and len(listed) == 5, "the pages have what the command lists"
    page = manage(accounts, "GET", "/v1/grants", bearer=HELPER).expect(200).json
    assert [grant["user_id"] for grant in page["grants"]] == ["ada"] and page["next"] is None, "only its own users"
    for method in ("GET", "PUT", "DELETE"):
        answers = [manage(accounts, method, f"/v1/grants/{user}", bearer=HELPER) for user in (others[0]["email"], "x")]
        assert [answer.status for answer in answers] == [403, 403] and answers[0].body == answers[1].body, (
            "known and unknown users of others cannot be told apart"
        )
    manage(accounts, "GET", "/v1/grants/nobody", bearer=HELPER).expect(404)
    assert fixture.states() == {"active": 5}, "nothing is changed"


def repeats(fixture, accounts):
    """A record that comes again after its refresh token was rotated does not bring the spent token back."""
    fixture.sandbox.settings(rotation=True, strict_rotation=True)
    grant = fixture.sandbox.create_expired("ray@example.com")
    record = import_line(grant, user_id="ray")
    stored = manage(accounts, "PUT", "/v1/grants/ray", record).expect(201).json
    wait_for(
        lambda: accounts.worker.events("refresh", grant=stored["grant"], outcome="refreshed"), 60, "it is refreshed"
    )
    answer = manage(accounts, "PUT", "/v1/grants/ray", record).expect(200).json
    assert (answer["result"], answer["state"]) == ("kept", "active"), "a repeated request changes nothing"
    line = json.dumps(record) + "\n"
    told = fixture.run("grants", "import", "-", "--replace", stdin=line)
    assert "user 'ray' is stored already: kept" in told.stderr, "nor does a repeated import"
    told = fixture.run("grants", "add", "ray", stdin=grant["refresh_token"]).stdout
    assert told.startswith("kept 'ray': active"), f"nor does a command: {told}"
    accounts.expire("ray")
    manage(accounts, "POST", "/v1/grants/ray/retry").expect(200)
    wait_for(
        lambda: len(accounts.worker.events("refresh", grant=stored["grant"], outcome="refreshed")) > 1,
        60,
        "the rotated token is still the stored one",
    )
    assert fixture.grants()["ray"]["state"] == "active", "the grant lives"
    fixture.sandbox.settings(rotation=False, strict_rotation=False)


def tries_again(fixture, accounts):
    """A grant that waits for its back-off is tried now."""
    fixture.sandbox.settings(outage="http503")
    accounts.expire("ada")
    fixture.set_due(1, "ada")
    wait_for(lambda: fixture.grants()["ada"]["state"] == "retrying", 60, "a refresh fails")
    fixture.sandbox.settings(outage="none")
    wait_for(lambda: not fixture.grants()["ada"]["lease_owner"], 60, "the refresh has ended")
    # An hour away, as after a long outage.
    fixture.set_due(fixture.grants()["ada"]["due_at"] + 3_600_000, "ada")
    answer = manage(accounts, "POST", "/v1/grants/ada/retry").expect(200).json
    assert answer == {"user_id": "ada", "result": "due", "connection": "default"}, "the grant is due"
    wait_for(lambda: fixture.grants()["ada"]["state"] == "active", 60, "the grant is refreshed long before")


def ends(fixture, accounts):
    """A grant ends here and at Google, and the same tokens do not come back."""
    before = fixture.sandbox.create(email="eve@example.com")[0]
    record = import_line(before, user_id="eve")
    manage(accounts, "PUT", "/v1/grants/eve", record).expect(201)
    answer = manage(accounts, "DELETE", "/v1/grants/eve").expect(200).json
    assert answer == {"user_id": "eve", "revocation": "pending", "connection": "default"}, (
        "the answer does not wait for Google"
    )

    def is_alive():
        grants = fixture.sandbox.call("/control/grants")
        return next(one["alive"] for one in grants if one["refresh_token"] == before["refresh_token"])

    wait_for(lambda: not is_alive(), 60, "the grant is revoked at Google")
    wait_for(lambda: fixture.grants()["eve"]["refresh_token"] is None, 60, "the tokens are deleted")
    assert manage(accounts, "DELETE", "/v1/grants/eve").expect(200).json["revocation"] == "done", "nothing is left"
    assert manage(accounts, "PUT", "/v1/grants/eve", record).expect(409).json["error"] == "ended", "the end is kept"
    assert manage(accounts, "POST", "/v1/grants/eve/retry").expect(409).json["error"] == "ended", "it is not retried"
    notice = accounts.backend.wait_for("eve", 1)[0]
    assert notice["type"] == "grant.disconnected", "the backend is notified"


def deletes(fixture, accounts):
    """A user is deleted with the session, and a repeated request finds nothing."""
    pair = accounts.sign_in(fixture.sandbox.create(email="gus@gmail.com")[0])
    user = accounts.public.get("/api/auth/me", pair["access_token"]).expect(200).json["id"]
    answer = manage(accounts, "DELETE", f"/v1/users/{user}").expect(200).json
    assert answer == {"user_id": user, "ended_sessions": 1, "revocation": None}, "the session ends"
    accounts.public.get("/api/auth/me", pair["access_token"]).expect(401)
    accounts.public.get("/v1/user/me", user_token(user)).expect(404)
    manage(accounts, "DELETE", f"/v1/users/{user}").expect(404)
    assert accounts.backend.wait_for(user, 1)[0]["type"] == "user.deleted", "the backend is notified"


def audits(accounts):
    """Each request of a service has its line, and each change one before it was made."""
    events = accounts.worker.events("manage")
    for operation in ("put", "disconnect", "retry", "delete_user"):
        outcomes = [
            event["outcome"] for event in events if (event["operation"], event["service"]) == (operation, "backend")
        ]
        assert outcomes[:2] == ["allowed", "done"], f"the audit has a {operation} before it is made"
    assert {event["service"] for event in events} == {"backend", "helper"}, "the audit names the service"
    assert not [event for event in events if set(event.values()) & {"ada", "eve"}], "the audit names no user"
