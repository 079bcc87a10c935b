"""Two Google accounts of one user: from the phone to the token, the notice, the commands, the files, and back."""

import concurrent.futures
import hashlib
import json
import time
import urllib.parse
import urllib.request

from accounts import SERVICE_KEY, Accounts, user_token
from expectations import wait_for

PRIVATE, WORK = "ada@gmail.com", "ada@work.example"
LIMITED_KEY = "a-service-that-gets-the-default-connection-alone"


def services():
    def entry(name, key, **more):
        digest = hashlib.sha256(key.encode()).hexdigest()
        return {"name": name, "credential_sha256": digest, "users": ["*"], **more}

    return [
        entry("mailer", SERVICE_KEY, scopes=["*"], manage=True),
        entry("limited", LIMITED_KEY, scopes=["*"], connections=["default"]),
    ]


def scenario(fixture):
    accounts = Accounts(fixture, services=services())
    sandbox, public = fixture.sandbox, accounts.public
    sandbox.settings(lifetime=3600)
    bearer = user_token("ada")
    private = sandbox.create(email=PRIVATE)[0]
    work = sandbox.create(email=WORK)[0]

    def add(grant, user=bearer, **fields):
        body = {"access_token": grant["access_token"], "refresh_token": grant["refresh_token"], **fields}
        return public.post("/v1/connections/google", body, user)

    # The first account by the seed's route, and nine more tries of one phone to add the second at once.
    accounts.connect_as_paypulse(private, bearer).expect(201)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: add(work, connection="new"), range(10)))
    identities = {answer.expect(201).json["data"]["connection"]["id"] for answer in answers}
    assert len(identities) == 1, "ten requests for one account make one connection"
    (second,) = identities
    listed = public.get("/v1/connections", bearer).expect(200).json["data"]["connections"]
    assert [(one["id"], one["google_email"]) for one in listed] == [("default", PRIVATE), (second, WORK)]
    profile = accounts.profile(bearer)
    assert profile["connections"] == listed, "the profile shows the same connections"
    default = {name: value for name, value in listed[0].items() if name != "id"}
    assert profile["gmail_connection"] == default, "the profile's old fields are those of default"

    # This account or nothing.
    refused = add(private, connection=second).expect(409).json["error"]
    assert (refused["code"], refused["expected"], refused["found"]) == ("ACCOUNT_MISMATCH", WORK, PRIVATE)
    refused = add(work, on_switch="refuse").expect(409).json["error"]
    assert (refused["code"], refused["expected"], refused["found"]) == ("ACCOUNT_SWITCH", PRIVATE, WORK)

    # Each feature gets the token of its account: by the route, the token endpoint, a handle, and the command.
    def owner(token):
        request = urllib.request.Request(sandbox.url + "/v1/userinfo", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["email"]

    def vend(connection=None, key=SERVICE_KEY, **more):
        query = {"connection": connection} if connection else {}
        return accounts.vend("ada", bearer=key, **query, **more)

    assert owner(vend().expect(200).json["access_token"]) == PRIVATE, "who names none gets the default account"
    assert owner(vend(second).expect(200).json["access_token"]) == WORK, "the named connection's account"
    vend("unknown").expect(404)
    vend("a b").expect(400)
    vend(key=LIMITED_KEY).expect(200)
    assert vend(second, LIMITED_KEY).expect(403).json["error"] == "forbidden", "the service is limited to default"

    def endpoint(subject, **more):
        form = {
            "grant_type": "refresh_token", "refresh_token": subject, "client_id": "mailer",
            "client_secret": SERVICE_KEY, **more,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return accounts.internal.call("POST", "/oauth2/token", urllib.parse.urlencode(form), headers=headers)

    handle = fixture.run(
        "services", "handle", "mailer", "ada", "--connection", second,
        "--services-file", fixture.folder / "services.json",
    ).stdout.strip()
    assert owner(endpoint("ada").expect(200).json["access_token"]) == PRIVATE
    assert owner(endpoint("ada", connection=second).expect(200).json["access_token"]) == WORK
    assert owner(endpoint(handle).expect(200).json["access_token"]) == WORK
    endpoint(handle, connection="default").expect(400)
    for connection, address in (("default", PRIVATE), (second, WORK)):
        token = fixture.run("token", "ada", "--connection", connection, "--min-ttl", "3500").stdout.strip()
        assert owner(token) == address, f"the command gives the token of {connection}"
    audited = {event.get("connection") for event in accounts.worker.events("vend", outcome="served")}
    assert audited == {None, second}, "the audit names the connection that is not default"

    commands(fixture, second)
    manages(accounts, second)
    events(accounts, second, add, work)
    copies(fixture, accounts, second)
    accounts.close()
    return f"two accounts on {fixture.store}"


def commands(fixture, second):
    """What an operator sees."""
    table = fixture.run("grants", "list").stdout
    assert "CONNECTION" in table and second in table, "the list has a column of connections"
    shown = json.loads(fixture.run("grants", "show", "ada", "--connection", second, "--json").stdout)
    assert (shown["connection"], shown["google_email"]) == (second, WORK), "show finds the connection"
    text = fixture.run("grants", "show", "ada").stdout
    assert PRIVATE in text and f"{second}: {WORK}" in text, "show names the other connections"
    missing = fixture.run("grants", "show", "ada", "--connection", "other", expect=None)
    assert f"there are: default, {second}" in missing.stderr, "an unknown connection is answered with those there are"
    assert "no connection" in missing.stderr and missing.returncode != 0
    for words in (["grants", "retry"], ["grants", "disconnect"], ["token"]):
        refused = fixture.run(*words, "ada", "--connection", "other", expect=67).stderr
        assert f"there are: default, {second}" in refused, f"{words} says which connections there are"
    retried = json.loads(fixture.run("grants", "retry", "ada", "--connection", second, "--json").stdout)
    assert (retried["due"], retried["connection"]) == (1, second), "the connection is due"
    disconnect = ["grants", "disconnect", "ada", "--connection", second, "--dry-run"]
    assert f"user 'ada' (connection {second}) here" in fixture.run(*disconnect).stdout, "the plan names the connection"
    assert json.loads(fixture.run(*disconnect, "--json").stdout)["connection"] == second
    assert second in fixture.run("users", "show", "ada").stdout, "the user's page has the connection"


def manages(accounts, second):
    """What a service that manages grants does."""
    def call(method, path, body=None, status=200):
        return accounts.internal.call(method, path, body, SERVICE_KEY).expect(status).json

    shown = call("GET", "/v1/grants/ada")
    assert shown["google_email"] == PRIVATE, "who names none gets the default connection"
    assert [one["connection"] for one in shown["connections"]] == ["default", second]
    assert call("GET", f"/v1/grants/ada?connection={second}")["google_email"] == WORK
    extra = accounts.sandbox.create(email="ada@third.example")[0]
    record = {"refresh_token": extra["refresh_token"], "labels": {"tenant": "acme"}}
    call("PUT", "/v1/grants/ada?connection=third", record, 201)
    found = call("GET", "/v1/grants?label=tenant%3Dacme")["grants"]
    assert [(one["connection"], one["labels"]) for one in found] == [("third", {"tenant": "acme"})]
    call("PUT", "/v1/grants/ada?connection=third", {**record, "labels": {"x" * 65: "y"}}, 400)
    call("DELETE", "/v1/grants/ada?connection=third")
    ended = accounts.backend.wait_for("ada", 1)[0]["data"]
    assert (ended["connection"], ended["labels"]) == ("third", {"tenant": "acme"}), "the notice names the connection"


def events(accounts, second, add, work):
    """A security event about one of the accounts, which another user shares."""
    other = user_token("eve")
    add(accounts.sandbox.create(email=WORK, sub=work["sub"])[0], other).expect(201)
    signed = accounts.sandbox.call(
        "/control/security-events", {"type": "tokens-revoked", "email": WORK, "toe": int(time.time())}
    )["token"]
    accounts.public.call(
        "POST", "/v1/google/security-events", signed, headers={"Content-Type": "application/secevent+jwt"}
    ).expect(202)

    def states(bearer):
        return {one["id"]: one["state"] for one in accounts.profile(bearer)["connections"]}

    wait_for(lambda: states(user_token("ada"))[second] == "disconnected", 60, "the account's connection ends")
    assert states(user_token("ada"))["default"] == "active", "the other account is as before"
    wait_for(lambda: states(other)["default"] == "disconnected", 60, "the same account of another user ends too")
    # The user signs in again: the same connection, by its id.
    again = accounts.sandbox.create(email=WORK, sub=work["sub"])[0]
    assert add(again, connection=second).expect(201).json["data"]["connection"]["state"] == "active"


def copies(fixture, accounts, second):
    """Export and import, a backup, and a copy to another database."""
    lines = [json.loads(line) for line in fixture.run("grants", "export", "--plaintext").stdout.splitlines()]
    exported = {(line["user_id"], line["connection"]): line for line in lines}
    assert ("ada", "default") in exported and ("ada", second) in exported, "the export names each connection"
    assert exported["ada", "third"]["labels"] == {"tenant": "acme"}
    accounts.worker.stop()
    copy = fixture.folder / "copy.db"
    fixture.run("store", "copy", "--from", fixture.database, "--to", copy)
    assert connections_in(fixture, copy) == set(exported), "the copy has every connection"
    # A new database from the export, whose lines name their connections.
    new = fixture.folder / "new.db"
    fixture.database = new
    fixture.run("grants", "import", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert connections_in(fixture, new) == set(exported), "the import has every connection"


def connections_in(fixture, database):
    fixture.database = database
    listed = fixture.run("grants", "list", "--json").stdout
    return {(line["user_id"], line["connection"]) for line in map(json.loads, listed.splitlines())}
