"""An app brings Google's serverAuthCode: the worker exchanges it, and the grant belongs to the server's client."""

import contextlib
import signal
import sqlite3
import threading

from accounts import Accounts, user_token
from expectations import wait_for
from harness import CLIENT

SERVER = "1234-server.apps.googleusercontent.com"
SECRET = "GOCSPX-the-secret-of-the-server"


class App:
    """Users of an app that sends codes."""

    def __init__(self, accounts):
        self.accounts = accounts
        self.sandbox = accounts.sandbox

    def code(self, email, secret=SECRET, client=SERVER, **more):
        """A code with the token of the app's own client, as the SDK returns both."""
        own = self.sandbox.create(email=email, sub=email, client_id=CLIENT)[0]
        body = {"email": email, "sub": email, "client_id": client, "client_secret": secret, **more}
        return {**self.sandbox.call("/control/codes", body), "access_token": own["access_token"]}

    def send(self, user, grant, **more):
        body = {"access_token": grant["access_token"], "server_auth_code": grant["code"], **more}
        return self.accounts.public.post("/v1/auth/gmail-tokens", body, user_token(user))

    def alive(self, grant):
        grants = self.sandbox.call("/control/grants")
        return next(one["alive"] for one in grants if one["refresh_token"] == grant["refresh_token"])


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600, clients=[CLIENT, SERVER])
    accounts = Accounts(fixture, start=False)
    secrets = accounts.write("client-secrets", f"{SERVER} {SECRET}")
    start_rules(fixture, accounts, secrets)
    accounts.extra += ["--server-client-id", SERVER, "--client-secret-file", secrets, "--stop-deadline", "2"]
    report = fixture.run("doctor", *accounts.extra, expect=None).stdout
    assert f"{SERVER} exchanges the app's codes" in report, "doctor names the server client"
    accounts.start()
    app = App(accounts)
    texts = connected(fixture, accounts, app) + refused(fixture, accounts, app)
    reloaded(accounts, app, secrets)
    if fixture.store == "sqlite":
        texts += not_stored(fixture, accounts, app)
    for log in fixture.folder.glob("*.log"):
        content = log.read_text(errors="replace")
        assert not [text for text in [*texts, SECRET] if text in content], f"{log.name} shows no secret"
    accounts.close()
    return ""


def start_rules(fixture, accounts, secrets):
    """A server client needs its secret."""
    for extra, words in (
        (["--server-client-id", SERVER], "needs --client-secret-file"),
        (["--server-client-id", "1234-none", "--client-secret-file", secrets], "has no secret of"),
    ):
        worker = fixture.start(*accounts.extra, *extra)
        assert worker.process.wait(timeout=60) == 78, "the worker does not start without the secret"
        assert words in worker.errors.read_text(), "the refusal says what is missing"


def connected(fixture, accounts, app):
    """A first connection, its repetition, its refresh with the secret, and an answer without a refresh token."""
    sandbox = accounts.sandbox
    # Doctor asks about a made-up refresh token, which for the sandbox is one of a public client.
    unexpected = sandbox.stats()["unexpected_fields"]
    grant = app.code("ada@example.com")
    sandbox.change(grant, hold=True)
    answers = []
    twins = [threading.Thread(target=lambda: answers.append(app.send("ada", grant))) for _ in range(2)]
    for twin in twins:
        twin.start()
    sandbox.call("/control/wait?holding=1")
    sandbox.call("/control/release", {"sub": "ada@example.com"})
    for twin in twins:
        twin.join()
    data = answers[0].expect(201).json["data"]
    assert data["refresh_token_missing"] is False and data["message"] == "First Gmail connection", (
        "the answer is that of a first connection"
    )
    assert answers[1].expect(201).json == answers[0].json, "a second request at once gets the same answer"
    assert app.send("ada", grant).expect(201).json == answers[0].json, "the same code again gets the same answer"
    grants = sandbox.stats(grants=True)["grants"]
    of_ada = [one for one in grants if one["current_refresh_token"] == grant["refresh_token"]]
    assert [one["requests"] for one in of_ada] == [1], "Google got the code once"
    assert fixture.grants()["ada"]["client_id"] == SERVER, "the grant belongs to the server's client"

    accounts.expire("ada")
    assert accounts.vend("ada").expect(200).json["access_token"], "a refresh with the client's secret succeeds"
    vended = accounts.vend("ada").expect(200).json["access_token"]
    accounts.public.post("/api/auth/mobile/google", {"access_token": vended}).expect(400)

    again = app.code("ada@example.com", brings_refresh_token=False)
    data = app.send("ada", again).expect(201).json["data"]
    assert data["refresh_token_missing"] is False, "the grant keeps the refresh token that it has"
    bob = app.code("bob@example.com", brings_refresh_token=False)
    data = app.send("bob", bob).expect(201).json["data"]
    assert data["refresh_token_missing"] is True, "the answer says that there is no refresh token"
    assert sandbox.stats()["unexpected_fields"] == unexpected, "no public client sends a secret"
    return [grant["code"], grant["refresh_token"], grant["access_token"], vended]


def refused(fixture, accounts, app):
    """Codes that are spent, foreign or of another account, and an absent Google."""
    sandbox = accounts.sandbox
    eve = app.code("eve@example.com")
    error = app.send("eve", {**eve, "code": "4/0Aforeign"}).expect(400).json["error"]
    assert error["code"] == "INVALID_CODE", "an unknown code is refused"
    for user in ("eve", "fox", "gil"):
        assert not accounts.worker.events("alarm", kind="codes_refused"), "one user alone raises no alarm"
        app.send(user, app.code(f"{user}@example.com", client=CLIENT, secret="")).expect(400)
    wait_for(lambda: accounts.worker.events("alarm", kind="codes_refused"), 60, "codes of another client are an alarm")
    alarm = accounts.worker.events("alarm", kind="codes_refused")[0]["text"]
    assert SERVER in alarm and "unauthorized_client" in alarm, "it says which client is right"
    app.send("eve", eve, refresh_token="1//a").expect(400)
    assert "eve" not in fixture.grants(), "a refused code stores nothing"

    sandbox.change(eve, answer={"preset": "temporarily_unavailable", "times": 1})
    error = app.send("eve", eve).expect(502).json["error"]
    assert error["code"] == "DEPENDENCY_FAILURE", "an absent Google is not the app's fault"
    assert "eve" not in fixture.grants(), "an absent Google stores nothing"
    app.send("eve", eve).expect(201)
    error = app.send("mallory", eve).expect(400).json["error"]
    assert error["code"] == "INVALID_CODE", "another user's code is refused"

    other = app.code("zoe@example.com")
    mixed = {**other, "access_token": app.code("eve@example.com")["access_token"]}
    error = app.send("eve", mixed).expect(400).json["error"]
    assert error["code"] == "INVALID_CREDENTIALS", "the code of another account is refused"
    wait_for(lambda: not app.alive(other), 60, "the token of the other account is revoked")
    shared = app.code("ada@example.com")
    app.send("eve", {**shared, "access_token": mixed["access_token"]}).expect(400)
    accounts.expire("ada")
    accounts.vend("ada").expect(200)
    assert app.alive(shared), "a revocation that would end the grant of another user is not sent"
    return [eve["code"], other["code"], other["refresh_token"], shared["refresh_token"]]


def reloaded(accounts, app, secrets):
    """A wrong secret spends no code, and a reload replaces it."""
    worker = accounts.worker
    grant = app.code("fay@example.com", secret="another")
    app.send("fay", grant).expect(502)
    concerns = accounts.internal.get("/readyz").json["concerns"]
    texts = [concern["text"] for concern in concerns if concern["kind"] == "codes_refused"]
    assert texts and "check --server-client-id and its secret" in texts[0], "a concern names the wrong secret"
    secrets.write_text(f"{SERVER} another\n")
    worker.signal(signal.SIGHUP)
    wait_for(lambda: "reloaded" in worker.errors.read_text(), 60, "the secret is read again")
    app.send("fay", grant).expect(201)
    concerns = accounts.internal.get("/readyz").json["concerns"]
    assert "codes_refused" not in [concern["kind"] for concern in concerns], "a code that works ends the concern"
    secrets.write_text(f"{SERVER} {SECRET}\n")
    worker.signal(signal.SIGHUP)
    wait_for(lambda: worker.errors.read_text().count("reloaded") == 2, 60, "the former secret is back")


def not_stored(fixture, accounts, app):
    """The store is blocked after Google's answer: the worker stops, and the next one has the refresh token."""
    sandbox, worker = accounts.sandbox, accounts.worker
    grant = app.code("gus@example.com")
    sandbox.change(grant, hold=True)
    answers = []
    request = threading.Thread(target=lambda: answers.append(app.send("gus", grant)))
    request.start()
    sandbox.call("/control/wait?holding=1")
    with contextlib.closing(sqlite3.connect(fixture.database, timeout=30, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        sandbox.call("/control/release", {"sub": "gus@example.com"})
        wait_for(lambda: sandbox.stats()["holding"] == 0, 60, "Google has answered")
        worker.stop(expect=74)
        database.execute("ROLLBACK")
    request.join()
    assert answers[0].status == 503, "the app is asked to send the code again"
    assert list(fixture.folder.glob("*.unsaved-*")), "the tokens are in a spill file"
    accounts.start()
    assert fixture.grants()["gus"]["client_id"] == SERVER, "the next start stores the grant"
    accounts.expire("gus")
    accounts.vend("gus").expect(200)
    return [grant["code"], grant["refresh_token"]]
