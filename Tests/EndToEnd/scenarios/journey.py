"""A user's whole journey: sign in, connect Gmail, lose the grant at Google, be notified, reconnect, log out."""

from accounts import WHOLE_SCOPE, Accounts
from harness import check, wait_for


def scenario(place):
    accounts = Accounts(place)
    sandbox, public = place.sandbox, accounts.public
    sandbox.settings(lifetime=3600)
    grant = sandbox.create(email="ada@gmail.com", name="Ada Byron")[0]

    # Sign in with Google; the app gets its own tokens, and its user's profile.
    pair = accounts.sign_in(grant)
    check((pair["token_type"], pair["expires_in"]) == ("bearer", 1800), f"the pair: {sorted(pair)}")
    me = public.get("/api/auth/me", pair["access_token"]).expect(200).json
    check((me["email"], me["name"], me["is_active"]) == ("ada@gmail.com", "Ada Byron", True), f"the profile: {me}")
    check(set(me) >= {"id", "picture", "avatar_url", "created_at", "last_login"}, f"the profile lacks fields: {me}")
    user = me["id"]
    before = accounts.profile(pair["access_token"])
    check(before["gmail_account_connected"] is False, "connected before anything was connected")

    # Connect Gmail.
    answer = accounts.connect(grant, pair["access_token"]).expect(201).json
    check(answer["message"] == "Gmail OAuth tokens stored successfully!" and answer["code"] == 201, f"{answer}")
    data = answer["data"]
    check(data["google_email"] == "ada@gmail.com" and data["account_switch"] is False, f"{data}")
    check(set(data["scope"].split()) == set(WHOLE_SCOPE.split()), f"the scope: {data['scope']}")
    check(data["message"] == "First Gmail connection", f"{data['message']}")
    profile = accounts.profile(pair["access_token"])
    check(profile["gmail_account_connected"] is True, "the profile says connected")
    check(profile["gmail_connection"]["state"] == "active", f"{profile['gmail_connection']}")
    check(accounts.vend(user).expect(200).json["access_token"] == grant["access_token"], "the stored token is vended")

    # The grant is revoked at Google; the next refresh notices.
    sandbox.call("/control/grants/set", {"email": "ada@gmail.com", "revoked": True})
    accounts.internal.post(
        f"/v1/grants/{user}/token/refresh", {"access_token": grant["access_token"]}, bearer="mailer-credential-of-32-bytes-or-more"
    ).expect(409)
    profile = accounts.profile(pair["access_token"])
    check(profile["gmail_account_connected"] is False, "the profile still says connected")
    connection = profile["gmail_connection"]
    check((connection["state"], connection["reason"]) == ("disconnected", "invalid_grant"), f"{connection}")
    check(connection["since"] and connection["google_email"] == "ada@gmail.com", f"{connection}")
    notice = accounts.backend.wait_for(user, 1)[0]
    check(notice["type"] == "grant.disconnected" and notice["data"]["reason"] == "invalid_grant", f"{notice}")
    refusal = accounts.vend(user).expect(409).json
    check(refusal["error"] == "disconnected" and refusal["reason"] == "invalid_grant", f"{refusal}")

    # The user signs in again.
    fresh = sandbox.create(email="ada@gmail.com", sub=grant["sub"])[0]
    data = accounts.connect(fresh, pair["access_token"]).expect(201).json["data"]
    check(data["account_switch"] is False, f"{data}")
    check(data["message"] == "Same Google account or first connection", f"{data}")
    check(accounts.profile(pair["access_token"])["gmail_account_connected"] is True, "the profile says connected again")
    notices = accounts.backend.wait_for(user, 2)
    check([notice["type"] for notice in notices] == ["grant.disconnected", "grant.connected"], f"{notices}")
    check(len({notice["id"] for notice in notices}) == 2, "each notice has its own id")

    # Log out: neither token works any more.
    public.post("/api/auth/logout", bearer=pair["access_token"]).expect(200)
    public.get("/api/auth/me", pair["access_token"]).expect(401)
    public.post("/api/auth/refresh", {"refresh_token": pair["refresh_token"]}).expect(401)
    wait_for(lambda: len(accounts.worker.events("notice", outcome="accepted")) == 2, 10, "two notices were accepted")
    check(len(accounts.backend.of(user)) == 2, "exactly two notices")
    accounts.close()
    return "signed in, connected, revoked, notified, reconnected, notified, logged out"
