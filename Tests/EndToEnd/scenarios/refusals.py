"""Tokens that must be refused: with the contract's error, with nothing stored and nothing disclosed."""

import base64
import json
import time

from accounts import JWT_SECRET, Accounts, encode, token, user_token
from harness import CLIENT


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox, public = fixture.sandbox, accounts.public
    sandbox.settings(lifetime=3600, clients=[])
    bearer = user_token("u-1")
    public.get("/v1/user/me", bearer).expect(200)
    sandbox_secret = sandbox.create(email="x@gmail.com")[0]

    # Google's tokens.
    foreign = sandbox.create(email="mallory@gmail.com", client_id="another-app.apps.googleusercontent.com")[0]
    expired = sandbox.create(email="late@gmail.com", client_id=CLIENT, lifetime=-5)[0]
    unverified = sandbox.create(
        email="unproven@example.com", client_id=CLIENT, email_verified=False
    )[0]
    for grant in (
        foreign,
        expired,
        unverified,
        {"access_token": "ya29.never-issued", "scope": "", "refresh_token": "1//x"},
    ):
        answer = accounts.connect(grant, bearer).expect(400).json
        assert answer["error"]["code"] == "INVALID_CREDENTIALS", "the refusal has its code"
        answer = public.post("/api/auth/mobile/google", {"access_token": grant["access_token"]}).expect(400).json
        assert answer == {"detail": "Invalid Google access token"}, "the refusal has the former backend's form"
    assert fixture.grants() == {}, "a refusal stores no grant"
    assert [row["user_id"] for row in fixture.rows("SELECT user_id FROM users")] == ["u-1"], "a refusal makes no user"

    # Google cannot be reached.
    sandbox.settings(outage="reset")
    answer = accounts.connect(sandbox_secret, bearer).expect(502).json
    assert answer["error"]["code"] == "DEPENDENCY_FAILURE", "the failure has its code"
    sandbox.settings(outage="none")
    assert fixture.grants() == {}, "a failure of Google stores no grant"

    # The app's own tokens.
    now = int(time.time())
    claims = {"sub": "u-1", "email": "a@example.com", "iat": now, "exp": now + 600}
    good = token(claims)
    head, body, mac = good.split(".")
    bad = {
        "none": f"{encode(json.dumps({'alg': 'none'}).encode())}.{body}.",
        "none, with a signature": f"{encode(json.dumps({'alg': 'none'}).encode())}.{body}.{mac}",
        "HS512": token(claims, header={"alg": "HS512"}),
        "RS256": token(claims, header={"alg": "RS256"}),
        "another secret": token(claims, secret="another secret, also long enough to be one"),
        "a changed claim": f"{head}.{encode(json.dumps({**claims, 'sub': 'u-2'}).encode())}.{mac}",
        "no exp": token({"sub": "u-1"}),
        "a refresh token": token({**claims, "type": "refresh"}),
        "two users": token({**claims, "user_id": "u-2"}),
        "a dead session": token({**claims, "sid": "0" * 32}),
        "padding": good + "=",
        "no JWT": "abc",
        "a key of zero bytes": token(claims, secret=""),
        "not from now": token({**claims, "nbf": now + 3600}),
        "a standard alphabet": f"{head}.{body}.{base64.b64encode(b'x' * 32).decode()}",
    }
    for name, value in bad.items():
        answer = public.get("/v1/user/me", value)
        assert answer.status == 401, f"{name} gets 401"
        assert answer.json["error"]["code"] == "INVALID_TOKEN", f"{name} gets the code INVALID_TOKEN"
        detail = public.get("/api/auth/me", value).expect(401)
        assert set(detail.json) == {"detail"} and detail.headers["www-authenticate"].startswith("Bearer"), (
            f"{name} gets the former backend's form"
        )
    late = public.get("/v1/user/me", token({**claims, "exp": now - 5})).expect(401).json
    assert late["error"]["code"] == "TOKEN_EXPIRED", "an expired token gets the code TOKEN_EXPIRED"
    forged_late = public.get("/v1/user/me", token({**claims, "exp": now - 5}, secret="x" * 40)).expect(401).json
    assert forged_late["error"]["code"] == "INVALID_TOKEN", "a forged token's expiry is not disclosed"
    assert public.get("/v1/user/me").expect(401).json["error"]["code"] == "INVALID_CREDENTIALS", (
        "a request without a token gets INVALID_CREDENTIALS"
    )
    twice = public.get("/v1/user/me", headers={"Authorization": f"Bearer {good}, Bearer {good}"}).expect(401)
    assert twice.json["error"]["code"] in ("INVALID_TOKEN", "INVALID_CREDENTIALS"), "two tokens are refused"

    # Bodies.
    for body, code in (
        ("{", "INVALID_JSON"),
        ("[]", "INVALID_JSON"),
        ("{}", "MISSING_FIELDS"),
        ('{"access_token": 7}', "INVALID_JSON"),
        ('{"access_token": ""}', "MISSING_FIELDS"),
        ("\xff", "INVALID_JSON"),
    ):
        answer = public.call(
            "POST", "/v1/connections/google", body.encode("latin-1"), bearer, {"Content-Type": "application/json"}
        ).expect(400).json
        assert answer["error"]["code"] == code, f"{body} gets its code"
    huge = public.call(
        "POST", "/v1/connections/google", "x" * 70_000, bearer, {"Content-Type": "application/json"}
    ).expect(413)
    assert set(huge.json["error"]) == {"code", "message"}, "the refusal of a large body has the newer form"
    huge = public.call("POST", "/api/auth/refresh", "x" * 70_000, headers={"Content-Type": "application/json"}).expect(
        413
    )
    assert set(huge.json) == {"detail"}, "the refusal of a large body has the former backend's form"
    for path, keys in (("/v1/user/me", {"error"}), ("/api/auth/me", {"detail"})):
        assert set(public.get(f"{path}?{'q' * 9000}").expect(414).json) == keys, (
            f"{path} refuses a long query in its own form"
        )
        assert set(public.get(path, headers={"X-Long": "h" * 18_000}).expect(431).json) == keys, (
            f"{path} refuses a long header in its own form"
        )
    public.call("POST", "/v1/connections/google", "<a/>", bearer, {"Content-Type": "text/xml"}).expect(415)
    assert public.call("PUT", "/v1/user/me", bearer=bearer).expect(405).headers["allow"] == "DELETE, GET, HEAD", (
        "the refusal names the allowed methods"
    )
    assert fixture.grants() == {}, "the refusals store no grant"

    # None of these values may be in a log.
    accounts.close()
    secrets = [
        good,
        foreign["access_token"],
        unverified["access_token"],
        JWT_SECRET,
        "unproven@example.com",
        "mallory@gmail.com",
    ]
    for path in fixture.folder.glob("*.log*"):
        for secret in secrets if path.name.startswith("errors") else []:
            assert secret not in path.read_text(), f"{path.name} holds no secret"
    for path in fixture.folder.glob("metrics*"):
        for secret in secrets:
            assert secret not in path.read_text(), f"{path.name} holds no secret"
    return f"{len(bad)} forged tokens"
