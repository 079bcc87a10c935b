"""A user signs in, connects Google, loses the grant at Google, is notified, reconnects and logs out."""

from accounts import WHOLE_SCOPE, Accounts
from expectations import wait_for


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox, public = fixture.sandbox, accounts.public
    sandbox.settings(lifetime=3600)
    grant = sandbox.create(email="ada@gmail.com", name="Ada Byron")[0]

    # Sign in with Google; the app gets its own tokens, and its user's profile.
    pair = accounts.sign_in(grant)
    assert (pair["token_type"], pair["expires_in"]) == ("bearer", 1800), (
        "the sign-in returns a pair of tokens with its lifetime"
    )
    me = public.get("/api/auth/me", pair["access_token"]).expect(200).json
    assert (me["email"], me["name"], me["is_active"]) == ("ada@gmail.com", "Ada Byron", True), (
        "the profile shows the Google account"
    )
    assert set(me) >= {"id", "picture", "avatar_url", "created_at", "last_login"}, "the profile has its other fields"
    user = me["id"]
    before = accounts.profile(pair["access_token"])
    assert before["gmail_account_connected"] is False, "a new user is not connected"

    # Connect by the route of PayPulse's app.
    answer = accounts.connect_as_paypulse(grant, pair["access_token"]).expect(201).json
    assert answer["message"] == "Gmail OAuth tokens stored successfully!" and answer["code"] == 201, (
        "the connection is confirmed"
    )
    data = answer["data"]
    assert data["google_email"] == "ada@gmail.com" and data["account_switch"] is False, (
        "the connection names its Google account"
    )
    assert set(data["scope"].split()) == set(WHOLE_SCOPE.split()), "the connection has every requested scope"
    assert data["message"] == "First Gmail connection", "the answer says that this is the first connection"
    profile = accounts.profile(pair["access_token"])
    assert profile["gmail_account_connected"] is True, "the profile says connected"
    assert profile["gmail_connection"]["state"] == "active", "the profile shows an active grant"
    assert accounts.vend(user).expect(200).json["access_token"] == grant["access_token"], "the stored token is vended"

    # The grant is revoked at Google; the next refresh notices.
    sandbox.call("/control/grants/set", {"email": "ada@gmail.com", "revoked": True})
    accounts.internal.post(
        f"/v1/grants/{user}/token/refresh",
        {"access_token": grant["access_token"]},
        bearer="mailer-credential-of-32-bytes-or-more",
    ).expect(409)
    profile = accounts.profile(pair["access_token"])
    assert profile["gmail_account_connected"] is False, "the profile says disconnected"
    connection = profile["gmail_connection"]
    assert (connection["state"], connection["reason"]) == ("disconnected", "invalid_grant"), (
        "the profile shows the reason of the disconnection"
    )
    assert connection["since"] and connection["google_email"] == "ada@gmail.com", (
        "the profile shows the time and account of the disconnection"
    )
    notice = accounts.backend.wait_for(user, 1)[0]
    assert notice["type"] == "grant.disconnected" and notice["data"]["reason"] == "invalid_grant", (
        "the notice reports the disconnection and its reason"
    )
    refusal = accounts.vend(user).expect(409).json
    assert refusal["error"] == "disconnected" and refusal["reason"] == "invalid_grant", (
        "the vending route names the disconnection and its reason"
    )

    # The user signs in again.
    fresh = sandbox.create(email="ada@gmail.com", sub=grant["sub"])[0]
    data = accounts.connect_as_paypulse(fresh, pair["access_token"]).expect(201).json["data"]
    assert data["account_switch"] is False, "the same account is not a switch"
    assert data["message"] == "Same Google account or first connection", "the answer says that the account is the same"
    assert accounts.profile(pair["access_token"])["gmail_account_connected"] is True, "the profile says connected again"
    notices = accounts.backend.wait_for(user, 2)
    assert [notice["type"] for notice in notices] == ["grant.disconnected", "grant.connected"], (
        "the backend is notified of both changes in order"
    )
    assert len({notice["id"] for notice in notices}) == 2, "each notice has its own id"

    # Log out: neither token works any more.
    public.post("/api/auth/logout", bearer=pair["access_token"]).expect(200)
    public.get("/api/auth/me", pair["access_token"]).expect(401)
    public.post("/api/auth/refresh", {"refresh_token": pair["refresh_token"]}).expect(401)
    wait_for(lambda: len(accounts.worker.events("notice", outcome="accepted")) == 2, 60, "two notices were accepted")
    assert len(accounts.backend.of(user)) == 2, "the backend gets exactly two notices"
    accounts.close()
    return "signed in, connected, revoked, notified, reconnected, notified, logged out"
