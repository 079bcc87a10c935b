"""A switch of Google accounts, a widening of scopes, a disconnection and a deletion."""

import urllib.parse

from accounts import SERVICE_KEY, WHOLE_SCOPE, Accounts, user_token
from harness import check, wait_for


def scenario(place):
    accounts = Accounts(place)
    sandbox, public = place.sandbox, accounts.public
    sandbox.settings(lifetime=3600)
    bearer = user_token("u-1")

    # A switch: the other account comes without a refresh token, and the first account's is never used for it.
    first = sandbox.create(email="first@gmail.com")[0]
    second = sandbox.create(email="second@gmail.com")[0]
    accounts.connect(first, bearer).expect(201)
    data = accounts.connect(second, bearer, with_refresh_token=False).expect(201).json["data"]
    check(data["account_switch"] is True, f"{data}")
    check(data["message"] == "Switching from first@gmail.com to second@gmail.com", f"{data}")
    row = place.grants()["u-1"]
    check(row["refresh_token"] is None and row["email"] == "second@gmail.com", "the old refresh token was kept")

    # Scopes widen: the newest refresh token wins.
    narrow = "https://www.googleapis.com/auth/userinfo.email openid"
    wide = WHOLE_SCOPE + " https://www.googleapis.com/auth/calendar"
    before = sandbox.create(email="second@gmail.com", sub=second["sub"], scope=narrow)[0]
    accounts.connect(before, bearer).expect(201)
    missing = accounts.vend("u-1", scope="https://www.googleapis.com/auth/calendar").expect(403).json
    check(missing["error"] == "missing_scopes", f"{missing}")
    check(missing["missing"] == ["https://www.googleapis.com/auth/calendar"], f"{missing}")
    after = sandbox.create(email="second@gmail.com", sub=second["sub"], scope=wide)[0]
    accounts.connect(after, bearer).expect(201)
    vended = accounts.vend("u-1", scope="https://www.googleapis.com/auth/calendar").expect(200).json
    check(set(vended["granted_scopes"]) == set(wide.split()), f"{vended['granted_scopes']}")
    granted = accounts.profile(bearer)["gmail_connection"]["granted_scopes"]
    check(set(granted) == set(wide.split()), f"{granted}")
    place.run("token", "u-1", "--min-ttl", "7200")
    check(sandbox.stats(grants=True)["grants"][3]["ok"] == 1, "the newest refresh token was used")

    # A form, as old apps send it, with the old field name.
    form = urllib.parse.urlencode(
        {"access_token": after["access_token"], "refresh_token": after["refresh_token"], "scope": wide, "expires_in": "3599"}
    )
    answer = public.call(
        "POST", "/v1/auth/gmail/store-tokens", form, bearer, {"Content-Type": "application/x-www-form-urlencoded"}
    ).expect(201)
    check(answer.json["data"]["message"] == "Same Google account or first connection", f"{answer.json}")

    # Two users share the account: disconnecting one must not end the other's.
    other = user_token("u-2")
    accounts.connect(after, other).expect(201)
    public.call("DELETE", "/v1/auth/gmail-tokens", bearer=bearer).expect(200)
    check(accounts.profile(bearer)["gmail_connection"]["reason"] == "user_request", "ended by request")
    check(place.grants()["u-1"]["refresh_token"] is None, "wiped")
    check(accounts.vend("u-2", min_ttl=0).expect(200).json["access_token"], "the other's still lives")

    # The last user of the account is deleted: the grant is revoked at Google and wiped, and the id is refused.
    public.call("DELETE", "/v1/user/me", bearer=other).expect(200)
    wait_for(lambda: place.grants().get("u-2", {}).get("refresh_token") is None, 30, "wiped after the revocation at Google")
    check(sandbox.stats()["by_route"].get("revoke") or True, "")
    gone = public.get("/v1/user/me", other).expect(404).json
    check(gone["error"]["code"] == "USER_NOT_FOUND", f"{gone}")
    accounts.vend("u-2").expect(404)
    accounts.connect(after, other).expect(404)
    # The answer to the deletion may be lost: a repeated request gets the same answer.
    public.call("DELETE", "/v1/user/me", bearer=other).expect(200)

    # Google takes a scope away: the next refresh finds out, and the backend is notified.
    third = user_token("u-3")
    partial = sandbox.create(email="third@gmail.com", scope=narrow)[0]
    accounts.connect(partial, third).expect(201)
    place.write("UPDATE grants SET scope = ? WHERE user_id = ?", narrow + " https://mail.google.com/", "u-3")
    accounts.internal.post(
        "/v1/grants/u-3/token/refresh", {"access_token": partial["access_token"]}, bearer=SERVICE_KEY
    ).expect(200)
    lost = accounts.backend.wait_for("u-3", 1)[0]
    check(lost["type"] == "grant.scopes_lost", f"{lost}")
    check(lost["data"]["lost_scopes"] == ["https://mail.google.com/"], f"{lost}")
    check(set(lost["data"]["granted_scopes"]) == set(narrow.split()), f"{lost}")

    # A user without a grant is deleted: the backend is notified as well. It was also notified of u-2, after the grant's
    # notice.
    public.call("DELETE", "/v1/user/me", bearer=user_token("u-4")).expect(200)
    check([notice["type"] for notice in accounts.backend.wait_for("u-4", 1)] == ["user.deleted"], "u-4's notice")
    types = [notice["type"] for notice in accounts.backend.wait_for("u-2", 2)]
    check(types == ["grant.disconnected", "user.deleted"], f"{types}")
    accounts.close()
    return ""
