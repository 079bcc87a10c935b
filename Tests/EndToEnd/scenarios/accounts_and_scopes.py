"""A switch of Google accounts, a widening of scopes, a disconnection and a deletion."""

import urllib.parse

from accounts import SERVICE_KEY, WHOLE_SCOPE, Accounts, user_token
from expectations import wait_for


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox, public = fixture.sandbox, accounts.public
    sandbox.settings(lifetime=3600)
    bearer = user_token("u-1")

    # A switch: the other account comes without a refresh token, and the first account's is never used for it.
    first = sandbox.create(email="first@gmail.com")[0]
    second = sandbox.create(email="second@gmail.com")[0]
    accounts.connect(first, bearer).expect(201)
    data = accounts.connect_as_paypulse(second, bearer, with_refresh_token=False).expect(201).json["data"]
    assert data["account_switch"] is True, "the answer reports an account switch"
    assert data["message"] == "Switching from first@gmail.com to second@gmail.com", "the answer names both accounts"
    row = fixture.grants()["u-1"]
    assert row["refresh_token"] is None and row["email"] == "second@gmail.com", (
        "the switch drops the old account's refresh token"
    )

    # Scopes widen: the newest refresh token wins.
    narrow = "https://www.googleapis.com/auth/userinfo.email openid"
    wide = WHOLE_SCOPE + " https://www.googleapis.com/auth/calendar"
    before = sandbox.create(email="second@gmail.com", sub=second["sub"], scope=narrow)[0]
    accounts.connect(before, bearer).expect(201)
    missing = accounts.vend("u-1", scope="https://www.googleapis.com/auth/calendar").expect(403).json
    assert missing["error"] == "missing_scopes", "the refusal names its reason"
    assert missing["missing"] == ["https://www.googleapis.com/auth/calendar"], "the refusal names the missing scope"
    after = sandbox.create(email="second@gmail.com", sub=second["sub"], scope=wide)[0]
    accounts.connect(after, bearer).expect(201)
    vended = accounts.vend("u-1", scope="https://www.googleapis.com/auth/calendar").expect(200).json
    assert set(vended["granted_scopes"]) == set(wide.split()), "the vended token has the wide scopes"
    granted = accounts.connection(bearer)["granted_scopes"]
    assert set(granted) == set(wide.split()), "the profile shows the wide scopes"
    fixture.run("token", "u-1", "--min-ttl", "7200")
    assert sandbox.stats(grants=True)["grants"][3]["ok"] == 1, "the refresh uses the newest refresh token"

    # A form, as old apps send it, with the old field name.
    form = urllib.parse.urlencode(
        {
            "access_token": after["access_token"],
            "refresh_token": after["refresh_token"],
            "scope": wide,
            "expires_in": "3599",
        }
    )
    answer = public.call(
        "POST", "/v1/auth/gmail/store-tokens", form, bearer, {"Content-Type": "application/x-www-form-urlencoded"}
    ).expect(201)
    assert answer.json["data"]["message"] == "Same Google account or first connection", (
        "the answer says that the account is the same"
    )

    # Two users share the account: disconnecting one must not end the other's.
    other = user_token("u-2")
    accounts.connect(after, other).expect(201)
    public.call("DELETE", "/v1/auth/gmail-tokens", bearer=bearer).expect(200)
    assert accounts.profile(bearer)["gmail_connection"]["reason"] == "user_request", (
        "the profile says that the user ended the connection"
    )
    assert fixture.grants()["u-1"]["refresh_token"] is None, "the refresh token is wiped"
    assert accounts.vend("u-2", min_ttl=0).expect(200).json["access_token"], (
        "the other user's grant still vends a token"
    )

    # The last user of the account is deleted: the grant is revoked at Google and wiped, and the id is refused.
    public.call("DELETE", "/v1/user/me", bearer=other).expect(200)
    wait_for(
        lambda: fixture.grants().get("u-2", {}).get("refresh_token") is None, 60, "wiped after the revocation at Google"
    )
    assert sandbox.stats()["by_route"].get("revoke"), "Google gets a revocation"
    gone = public.get("/v1/user/me", other).expect(404).json
    assert gone["error"]["code"] == "USER_NOT_FOUND", "the deleted user is unknown"
    accounts.vend("u-2").expect(404)
    accounts.connect(after, other).expect(404)
    # The answer to the deletion may be lost: a repeated request gets the same answer.
    public.call("DELETE", "/v1/user/me", bearer=other).expect(200)

    # Google takes a scope away: the next refresh finds out, and the backend is notified.
    third = user_token("u-3")
    partial = sandbox.create(email="third@gmail.com", scope=narrow)[0]
    accounts.connect(partial, third).expect(201)
    fixture.write("UPDATE grants SET scope = ? WHERE user_id = ?", narrow + " https://mail.google.com/", "u-3")
    accounts.internal.post(
        "/v1/grants/u-3/token/refresh", {"access_token": partial["access_token"]}, bearer=SERVICE_KEY
    ).expect(200)
    lost = accounts.backend.wait_for("u-3", 1)[0]
    assert lost["type"] == "grant.scopes_lost", "the notice reports lost scopes"
    assert lost["data"]["lost_scopes"] == ["https://mail.google.com/"], "the notice names the lost scope"
    assert set(lost["data"]["granted_scopes"]) == set(narrow.split()), "the notice names the remaining scopes"

    # A user without a grant is deleted: the backend is notified as well. It was also notified of u-2, after the grant's
    # notice.
    public.call("DELETE", "/v1/user/me", bearer=user_token("u-4")).expect(200)
    assert [notice["type"] for notice in accounts.backend.wait_for("u-4", 1)] == ["user.deleted"], (
        "u-4's backend is notified of the deletion alone"
    )
    types = [notice["type"] for notice in accounts.backend.wait_for("u-2", 2)]
    assert types == ["grant.disconnected", "user.deleted"], (
        "u-2's backend is notified of the disconnection, then of the deletion"
    )
    accounts.close()
    return ""
