"""Google's security events: each has taken effect when Google gets its answer, and forged ones are refused."""

import json
import time

from accounts import Accounts, user_token
from expectations import wait_for
from harness import CLIENT


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox, public = fixture.sandbox, accounts.public
    sandbox.settings(lifetime=3600)

    def connected(user, email):
        grant = sandbox.create(email=email)[0]
        accounts.connect(grant, user_token(user)).expect(201)
        return grant

    def send(**event):
        signed = sandbox.call("/control/security-events", event)["token"]
        return signed, public.call(
            "POST", "/v1/google/security-events", signed, headers={"Content-Type": "application/secevent+jwt"}
        )

    def just_now():
        """The time of an event itself. Google's tokens do not have it, and then an event this soon is checked."""
        return {"toe": int(time.time())}

    def is_at_once(user, state):
        assert fixture.grants()[user]["state"] == state, f"{user} is {state} when Google gets its answer"

    for form in ("prefix", "hash"):
        grant = connected(f"by-{form}", f"{form}@gmail.com")
        token, answer = send(type="token-revoked", refresh_token=grant["refresh_token"], form=form, **just_now())
        answer.expect(202)
        is_at_once(f"by-{form}", "disconnected")
        row = fixture.grants()[f"by-{form}"]
        assert row["refresh_token"] is None and row["reason"] == "token_revoked", (
            "the event wipes the token with its reason"
        )
        # Delivered again: accepted, but it has no second effect.
        public.call("POST", "/v1/google/security-events", token).expect(202)
        accounts.backend.wait_for(f"by-{form}", 1)

    grant = connected("u-1", "ada@gmail.com")
    pair = accounts.sign_in(grant)
    public.get("/api/auth/me", pair["access_token"]).expect(200)
    send(type="sessions-revoked", email="ada@gmail.com")[1].expect(202)
    public.get("/api/auth/me", pair["access_token"]).expect(401)
    assert fixture.grants()["u-1"]["state"] == "active", "sessions-revoked leaves the grant active"
    send(type="account-disabled", email="ada@gmail.com", reason="hijacking", **just_now())[1].expect(202)
    is_at_once("u-1", "suspended")
    assert not accounts.is_connected(user_token("u-1")), "a suspended grant is shown as not connected"
    send(type="account-enabled", email="ada@gmail.com")[1].expect(202)
    wait_for(lambda: fixture.grants()["u-1"]["state"] == "active", 60, "the account is enabled again", pause=0.02)
    send(type="account-credential-change-required", email="ada@gmail.com")[1].expect(202)
    send(type="verification", state="hello", aud=CLIENT)[1].expect(202)
    send(type="tokens-revoked", email="ada@gmail.com", **just_now())[1].expect(202)
    is_at_once("u-1", "disconnected")

    # A late delivery of an event from before the user reconnected changes nothing.
    accounts.connect(sandbox.create(email="ada@gmail.com", sub=grant["sub"])[0], user_token("u-1")).expect(201)
    _, answer = send(type="tokens-revoked", email="ada@gmail.com", iat=int(time.time()) - 3600)
    answer.expect(202)
    assert fixture.grants()["u-1"]["state"] == "active", "an old event leaves the new grant active"

    # The user disconnects and signs in again, and only then Google issues the event for the former tokens.
    accounts.disconnect(user_token("u-1"))
    wait_for(lambda: fixture.grants()["u-1"]["refresh_token"] is None, 60, "the grant is revoked at Google")
    new = sandbox.create(email="ada@gmail.com", sub=grant["sub"])[0]
    accounts.connect(new, user_token("u-1")).expect(201)
    before = fixture.grants()["u-1"]
    send(type="tokens-revoked", email="ada@gmail.com")[1].expect(202)
    wait_for(
        lambda: fixture.grants()["u-1"]["last_success_at"] != before["last_success_at"], 60, "it is refreshed", 0.02
    )
    after = fixture.grants()["u-1"]
    assert after["state"] == "active" and after["refresh_token"] == before["refresh_token"], "the new token is kept"
    # The same event when the new token is revoked too: Google's own answer ends the grant.
    sandbox.call("/control/grants/set", {"refresh_token": new["refresh_token"], "revoked": True})
    send(type="tokens-revoked", email="ada@gmail.com")[1].expect(202)
    wait_for(lambda: fixture.grants()["u-1"]["state"] == "disconnected", 60, "Google refuses the new token", pause=0.02)
    assert fixture.grants()["u-1"]["reason"] == "invalid_grant", "only Google's answer ends the new grant"

    # Forged ones.
    accounts.connect(sandbox.create(email="ada@gmail.com", sub=grant["sub"])[0], user_token("u-1")).expect(201)
    for fault in ("alg_none", "hs256", "bad_signature"):
        send(type="tokens-revoked", email="ada@gmail.com", forge=fault)[1].expect(400)
    # An unknown key might be a new one: only a fetch tells, at most once a minute.
    unknown = [send(type="tokens-revoked", email="ada@gmail.com", forge="unknown_kid")[1].status for _ in range(2)]
    assert unknown[0] in (400, 503) and unknown[1] == 503, "an event of an unknown key is refused, or asked for again"
    send(type="tokens-revoked", email="ada@gmail.com", aud="another-app")[1].expect(400)
    send(type="tokens-revoked", email="ada@gmail.com", iss="https://evil.example/")[1].expect(400)
    public.call("POST", "/v1/google/security-events", "no token at all").expect(400)
    public.call("POST", "/v1/google/security-events", "x" * 70_000).expect(413)
    assert fixture.grants()["u-1"]["state"] == "active", "forged events have no effect"

    manage_stream(fixture)
    accounts.close()
    return ""


def manage_stream(fixture):
    """The commands that register, show and verify the stream, by a service account's key."""
    account = fixture.folder / "account.json"
    account.write_text(json.dumps(fixture.sandbox.call("/control/service-accounts", {})))
    account.chmod(0o600)
    url = "https://api.example.com/v1/google/security-events"
    common = ["--service-account-file", account, "--risc-endpoint", fixture.sandbox.url]
    fixture.run("google-events", "status", *common, expect=None)
    registered = json.loads(fixture.run("google-events", "register", "--url", url, "--json", *common).stdout)
    assert registered["url"] == url and len(registered["events"]) > 5, "the URL and the kinds of events are registered"
    assert url in fixture.run("google-events", "status", *common).stdout, "the status shows the stream's URL"
    from_input = ["--service-account-file", "-", *common[2:]]
    piped = fixture.run("google-events", "status", *from_input, stdin=account.read_text())
    assert url in piped.stdout, "the key can come from standard input"
    verified = json.loads(fixture.run("google-events", "verify", "--state", "hello", "--json", *common).stdout)
    assert verified == {"state": "hello"}, "the event will carry the state"
    fixture.sandbox.call("/control/security-events/stream", {"forbidden": True})
    refusal = fixture.run("google-events", "status", *common, expect=None)
    assert refusal.returncode != 0 and "Firebase" in refusal.stderr, "the refusal names Firebase's key"
    account.chmod(0o644)
    refusal = fixture.run("google-events", "status", *common, expect=None)
    assert refusal.returncode != 0 and "chmod 600" in refusal.stderr, "the refusal of an open key file names the remedy"
    assert "PRIVATE KEY" not in refusal.stderr + refusal.stdout, "the key is not printed"
