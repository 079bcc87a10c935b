"""Refresh tokens of exchanged codes are bound to a key (DPoP): proofs, nonces, wrong clocks, and the key's safety."""

import json
import pathlib
import subprocess

from accounts import Accounts, user_token
from expectations import wait_for
from harness import CLIENT
from oauth_libraries import PYTHON
from server_auth_code import SECRET, SERVER, App

# Another implementation of RFC 7515 checks a proof, with the key in its header.
VERIFICATION = """
import json, sys
from authlib.jose import JsonWebKey, JsonWebSignature
from authlib.common.encoding import urlsafe_b64decode
proof = sys.stdin.read().strip()
header = json.loads(urlsafe_b64decode(proof.split(".")[0].encode()))
key = JsonWebKey.import_key(header["jwk"])
data = JsonWebSignature(algorithms=["ES256"]).deserialize_compact(proof, key)
print(json.dumps({"header": header, "claims": json.loads(data["payload"])}))
"""


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600, clients=[CLIENT, SERVER])
    accounts = Accounts(fixture, start=False)
    secrets = accounts.write("client-secrets", f"{SERVER} {SECRET}")
    server = ["--server-client-id", SERVER, "--client-secret-file", secrets, "--stop-deadline", "2"]
    accounts.extra += server
    needs_a_key(fixture, accounts)
    accounts.extra += ["--bind-tokens"]
    accounts.start()
    app = App(accounts)
    bound(fixture, accounts, app)
    verified(accounts)
    nonces(fixture, accounts)
    key_is_safe(fixture, accounts)
    wrong_clock(fixture, accounts, server)
    accounts.extra.remove("--bind-tokens")
    accounts.start()
    switched_off(accounts, app)
    revoked(fixture, accounts, app)
    accounts.close()
    return ""


def needs_a_key(fixture, accounts):
    """The setting without a key names the command that makes one."""
    worker = fixture.start(*accounts.extra, "--bind-tokens")
    assert worker.process.wait(timeout=60) == 78, "the worker does not start without a binding key"
    assert "keys add-binding" in worker.errors.read_text(), "the refusal names the command"
    report = fixture.run("doctor", *accounts.extra, "--bind-tokens", expect=None).stdout
    assert "keys add-binding" in report, "doctor names the command too"
    fixture.run("keys", "add-binding")


def bound_to(accounts, grant):
    grants = accounts.sandbox.call("/control/grants")
    return next(one["bound_to"] for one in grants if one["refresh_token"] == grant["refresh_token"])


def challenges(accounts):
    return accounts.sandbox.stats()["by_answer"].get("use_dpop_nonce", 0)


def refresh(accounts, user, status=200):
    accounts.expire(user)
    return accounts.vend(user).expect(status)


def bound(fixture, accounts, app):
    """A code's refresh token is bound, and refreshed with proofs; one that the app brings is not."""
    grant = app.code("ada@example.com")
    app.send("ada", grant).expect(201)
    assert bound_to(accounts, grant), "the refresh token is bound"
    assert challenges(accounts) == 1, "the first proof had no nonce, and the second was accepted"
    refresh(accounts, "ada")
    refresh(accounts, "ada")
    assert challenges(accounts) == 2, "refreshes have a nonce of their own, and keep it"
    assert accounts.sandbox.stats()["proofs"] == 3, "each request had a proof"
    own = accounts.sandbox.create(email="own@example.com")[0]
    accounts.connect(own, user_token("own")).expect(201)
    refresh(accounts, "own")
    assert accounts.sandbox.stats()["proofs"] == 3, "a token that is not bound needs none"
    listed = fixture.run("keys", "list").stdout.splitlines()
    assert [line.split()[1:3] for line in listed] == [["seals", "4"], ["binds", "1"]], "the keys' tokens are counted"
    key = listed[1].split()[0]
    assert f"bound to key {key}" in fixture.run("grants", "show", "ada").stdout, "the grant names its key"
    assert "bound" not in fixture.run("grants", "show", "own").stdout, "the other grant names none"
    report = fixture.run("doctor", *accounts.extra, expect=None).stdout
    assert "binds 1 refresh token" in report, "doctor says what depends on the key"
    lines = [json.loads(line) for line in fixture.run("grants", "export", "--plaintext").stdout.splitlines()]
    assert {line["user_id"]: line.get("binding_key") for line in lines} == {"ada": key, "own": None}


def verified(accounts):
    """Another implementation accepts the proof."""
    if not PYTHON.exists():
        return
    proof = accounts.sandbox.stats()["last_proof"]
    run = subprocess.run([PYTHON, "-c", VERIFICATION], input=proof, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, f"Authlib accepts the proof; it wrote: {run.stderr[-500:]}"
    read = json.loads(run.stdout)
    assert read["header"]["typ"] == "dpop+jwt" and read["header"]["alg"] == "ES256"
    assert sorted(read["header"]["jwk"]) == ["crv", "kty", "x", "y"], "no private number is in the header"
    assert sorted(read["claims"]) == ["htm", "htu", "iat", "jti", "nonce"]
    assert read["claims"]["htu"] == accounts.sandbox.url + "/token"


def nonces(fixture, accounts):
    """A nonce that has expired costs one more request; one that never works is a fault that passes."""
    before = challenges(accounts)
    accounts.sandbox.call("/control/expire-nonces", {})
    refresh(accounts, "ada")
    assert challenges(accounts) == before + 1, "the challenge was answered"
    assert fixture.states() == {"active": 2}, "nobody noticed"
    accounts.sandbox.settings(nonce_lifetime_ms=0)
    accounts.sandbox.call("/control/expire-nonces", {})
    refresh(accounts, "ada", status=503)
    assert challenges(accounts) == before + 3, "the second challenge was not answered"
    grant = fixture.grants()["ada"]
    assert (grant["state"], grant["reason"]) == ("retrying", "use_dpop_nonce"), "the grant waits"
    accounts.sandbox.settings(nonce_lifetime_ms=300_000)
    fixture.set_due(0, "ada")
    wait_for(lambda: fixture.states() == {"active": 2}, 60, "the next try works")
    assert not accounts.worker.events("alarm"), "no alarm was raised"


def key_is_safe(fixture, accounts):
    """No command removes a key that a grant needs, and the worker keeps one that the file has lost."""
    key = fixture.run("keys", "list").stdout.splitlines()[1].split()[0]
    fixture.run("keys", "add-binding")
    refusal = fixture.run("keys", "retire", key, expect=75).stderr
    assert f"key {key} binds 1 token" in refusal, "the refusal says what needs the key"
    fixture.run("keys", "rotate")
    refresh(accounts, "ada")
    content = fixture.keys.read_text()
    fixture.keys.write_text("".join(line for line in content.splitlines(keepends=True) if not line.startswith(key)))
    wait_for(lambda: accounts.worker.events("alarm", kind="key_ring_refused"), 60, "the ring is refused")
    refresh(accounts, "ada")
    status = fixture.run("status", *accounts.extra).stdout
    assert f"of key {key}, which the key file lacks" in status, "status names the key"
    unreadable = fixture.run("grants", "list", "--unreadable", expect=None).stdout
    assert "ada" in unreadable and "own" not in unreadable, "its users can be listed"
    fixture.keys.write_text(content)
    assert accounts.internal.get("/readyz").status == 200


def wrong_clock(fixture, accounts, client):
    """A clock that is ten minutes ahead ends no grant, and is named."""
    accounts.worker.stop()
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    assert library, "libfaketime is installed (package faketime)"
    clock = fixture.folder / "clock"
    clock.write_text("+0")
    fake = {
        "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        # The worker compares the times of its database file, which a step of the clock does not change.
        "NO_FAKE_STAT": "1",
    }
    worker = fixture.start(*client, environment=fake).wait_started()
    clock.write_text("+600")
    if fixture.store == "sqlite":  # The schedule on PostgreSQL has the server's clock, and proofs have the machine's.
        wait_for(lambda: worker.events("clock_step"), 60, "the step is noticed")
    fixture.set_due(0, "ada")
    wait_for(lambda: worker.events("alarm", kind="proof_refused"), 120, "the refused proof is an alarm")
    text = worker.events("alarm", kind="proof_refused")[0]["text"]
    assert "this machine's clock is" in text and "ahead of the endpoint's" in text, f"it names the clock: {text}"
    grant = fixture.grants()["ada"]
    assert (grant["state"], grant["reason"]) == ("retrying", "invalid_dpop_proof"), "the grant waits"
    # Google says that it can also refuse a proof with invalid_grant.
    ada = next(one for one in accounts.sandbox.call("/control/grants") if one["bound_to"])
    accounts.sandbox.change(ada, answer="invalid_grant")
    fixture.set_due(0, "ada")
    wait_for(lambda: fixture.grants()["ada"]["reason"] == "clock_wrong", 120, "the clock is the reason")
    assert fixture.grants()["ada"]["state"] == "retrying", "the grant has not ended"
    accounts.sandbox.change(ada, answer=None)
    worker.stop()


def switched_off(accounts, app):
    """A bound token stays bound, and new ones are not."""
    wait_for(lambda: app.accounts.fixture.states() == {"active": 2}, 120, "the clock is right again")
    before = accounts.sandbox.stats()["proofs"]
    refresh(accounts, "ada")
    assert accounts.sandbox.stats()["proofs"] == before + 1, "the bound token still has proofs"
    grant = app.code("bob@example.com")
    app.send("bob", grant).expect(201)
    assert bound_to(accounts, grant) is None, "a new one is not bound"


def revoked(fixture, accounts, app):
    """A bound token is revoked without a proof."""
    before = accounts.sandbox.stats()["proofs"]
    grants = accounts.sandbox.call("/control/grants")
    ada = next(one for one in grants if one["bound_to"])
    fixture.run("grants", "disconnect", "ada", "--yes")
    wait_for(lambda: not app.alive(ada), 60, "the token is revoked")
    assert accounts.sandbox.stats()["proofs"] == before
