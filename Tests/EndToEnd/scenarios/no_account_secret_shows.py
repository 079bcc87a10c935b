"""Every route is called at the log level debug: no token, secret, credential, e-mail or body is in any log or in the
database."""

import json
import urllib.parse

from accounts import JWT_SECRET, NOTICE_SECRET, SERVICE_KEY, Accounts, token, user_token
from expectations import wait_for


def scenario(fixture):
    accounts = Accounts(fixture, "--log-level", "debug")
    sandbox, public, internal = fixture.sandbox, accounts.public, accounts.internal
    sandbox.settings(lifetime=3600, rotation=True)
    secrets, names = {JWT_SECRET, NOTICE_SECRET, SERVICE_KEY}, set()

    def known(grant):
        secrets.update((grant["access_token"], grant["refresh_token"]))
        names.update((grant["email"], grant["sub"]))
        return grant

    def keep(answer):
        """Records the secrets in an answer that must not show elsewhere."""
        if answer.headers.get("content-type", "").startswith("application/json"):
            body = answer.json
            secrets.update(body[key] for key in ("access_token", "refresh_token") if body.get(key))
        return answer

    first = known(sandbox.create(email="first.secret@gmail.com")[0])
    second = known(sandbox.create(email="second.secret@gmail.com")[0])
    foreign = known(sandbox.create(email="foreign.secret@gmail.com", client_id="another-app")[0])
    pair = keep(public.post("/api/auth/mobile/google", {"access_token": first["access_token"]}).expect(200)).json
    bearer = pair["access_token"]
    user = public.get("/api/auth/me", bearer).expect(200).json["id"]
    paypulse = user_token("u-1")
    secrets.add(paypulse)
    names.add("u-1@paypulse.example")
    for value in (bearer, paypulse):
        accounts.connect(first, value).expect(201)
        accounts.connect(foreign, value).expect(400)
        accounts.connect({**first, "access_token": "ya29.broken-token-of-nobody"}, value).expect(400)
        accounts.profile(value)
    secrets.add("ya29.broken-token-of-nobody")
    form = urllib.parse.urlencode({"access_token": second["access_token"], "refresh_token": second["refresh_token"]})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    public.call("POST", "/v1/auth/gmail/store-tokens", form, paypulse, kind).expect(201)
    public.call("POST", "/v1/auth/gmail-tokens", '{"access_token": "ya29.in-a-broken-body', paypulse).expect(415)
    secrets.add("ya29.in-a-broken-body")
    # In a query and in a path, which are wrong places for a token.
    public.get(f"/v1/user/me?access_token={first['access_token']}", paypulse)
    public.get(f"/v1/{first['refresh_token'].replace('/', '%2F')}")
    internal.get(f"/v1/grants/{user}/token?credential={SERVICE_KEY}")
    forged = token({"sub": "u-1", "exp": 9_999_999_999}, secret="another secret, also long enough to be one")
    secrets.add(forged)
    public.get("/v1/user/me", forged).expect(401)

    keep(accounts.vend(user).expect(200))
    accounts.vend(user, bearer="a-credential-of-nobody").expect(401)
    secrets.add("a-credential-of-nobody")
    accounts.expire(user, "u-1")
    keep(accounts.vend(user).expect(200))
    named = {"access_token": keep(accounts.vend("u-1").expect(200)).json["access_token"]}
    internal.post("/v1/grants/u-1/token/refresh", named, SERVICE_KEY)
    sandbox.settings(outage="html502")
    accounts.expire(user)
    accounts.vend(user).expect(503)
    accounts.connect(first, bearer).expect(502)
    sandbox.settings(outage="none")
    for path in ("/metrics", "/status", "/readyz", "/healthz", "/"):
        answer = internal.get(path)
        for secret in secrets | names:
            assert secret.encode() not in answer.body, f"the answer of {path} holds no secret"

    event = sandbox.call(
        "/control/security-events", {"type": "token-revoked", "refresh_token": first["refresh_token"], "form": "hash"}
    )["token"]
    secrets.add(event)
    public.call("POST", "/v1/google/security-events", event).expect(202)
    public.call("POST", "/v1/google/security-events", event[:-5] + "AAAAA").expect(400)
    renewed = keep(public.post("/api/auth/refresh", {"refresh_token": pair["refresh_token"]}).expect(200)).json
    public.post("/api/auth/refresh", {"refresh_token": pair["refresh_token"] + "x"}).expect(401)
    public.post("/api/auth/logout", bearer=renewed["access_token"]).expect(200)
    public.call("DELETE", "/v1/auth/gmail-tokens", bearer=paypulse).expect(200)
    public.call("DELETE", "/v1/user/me", bearer=paypulse).expect(200)
    wait_for(lambda: accounts.backend.of("u-1"), 60, "the backend is notified of the end")
    for notice in accounts.backend.notices:
        for secret in secrets | names:
            assert secret not in json.dumps(notice), "no notice holds a secret"
    accounts.close()

    outputs = 0
    for path in [*fixture.folder.glob("errors-*"), *fixture.folder.glob("metrics-*")]:
        text = path.read_text()
        outputs += 1
        for secret in secrets | names:
            assert secret not in text, f"{path.name} holds no secret"
        # A part of a token must not show either.
        for secret in secrets:
            assert len(secret) < 40 or secret[8:32] not in text, f"{path.name} holds no part of a secret"
    assert "request" in accounts.worker.errors.read_text(), "the level debug logs requests"
    for path in fixture.folder.glob("grants.sqlite*"):
        content = path.read_bytes()
        for secret in secrets:
            assert secret.encode() not in content, f"{path.name} holds no secret"
    # The traces of the deleted user have no name and no address.
    for row in fixture.rows("SELECT * FROM users WHERE user_id = 'u-1'"):
        assert all("secret@" not in str(value) and "paypulse.example" not in str(value) for value in row.values()), (
            "no row holds an address"
        )
    return f"{len(secrets)} secrets, {len(names)} names, {outputs} logs"
