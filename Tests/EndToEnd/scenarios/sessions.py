"""The app's own sessions: one refresh for one 401, rotation with a grace, reuse, and another app's log-out."""

import concurrent.futures

from accounts import Accounts
from faults import Clocks

GRACE = 60  # seconds, the default of --session-grace


def scenario(fixture):
    accounts = Accounts(fixture)
    public = accounts.public
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    pair = accounts.sign_in(grant)

    def refresh(token):
        return public.post("/api/auth/refresh", {"refresh_token": token})

    # Many callers at once with one token get one successor.
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: refresh(pair["refresh_token"]).expect(200).json, range(32)))
    assert len({answer["refresh_token"] for answer in answers}) == 1, "all callers get one successor"
    second = answers[0]
    assert second["refresh_token"] != pair["refresh_token"], "the refresh rotates the token"
    public.get("/api/auth/me", second["access_token"]).expect(200)
    # An access token cannot be used to refresh, nor a refresh token to call.
    assert refresh(second["access_token"]).expect(401).json == {"detail": "Invalid refresh token"}, (
        "an access token is not a refresh token"
    )
    public.get("/api/auth/me", second["refresh_token"]).expect(401)

    # The successor is kept only for the grace, and only sealed.
    rows = fixture.rows("SELECT * FROM sessions")
    assert len(rows) == 1, "the user has one session"
    for value in rows[0].values():
        text = value if isinstance(value, bytes) else str(value).encode()
        for token in (pair["refresh_token"], second["refresh_token"]):
            assert token.encode() not in text, "each refresh token in the database is sealed"

    # After the grace a used token ends the whole family.
    third = refresh(second["refresh_token"]).expect(200).json
    clocks = Clocks(fixture, accounts)
    clocks.advance(GRACE + 1)
    refresh(pair["refresh_token"]).expect(401)
    refresh(third["refresh_token"]).expect(401)
    public.get("/api/auth/me", third["access_token"]).expect(401)

    # Two devices: logging out one does not affect the other.
    one, two = accounts.sign_in(grant), accounts.sign_in(grant)
    public.post("/api/auth/logout", bearer=one["refresh_token"]).expect(200)
    public.get("/api/auth/me", one["access_token"]).expect(401)
    public.get("/api/auth/me", two["access_token"]).expect(200)
    public.get("/api/auth/status").expect(200)

    # The secret is being replaced: both are accepted, the first signs.
    accounts.write("jwt", "the next secret, which is long enough as well\nthe app's own secret, which is long enough")
    accounts.worker.stop()
    accounts.start()
    public.get("/api/auth/me", two["access_token"]).expect(200)
    renewed = refresh(two["refresh_token"]).expect(200).json
    accounts.write("jwt", "the next secret, which is long enough as well")
    accounts.worker.stop()
    accounts.start()
    public.get("/api/auth/me", renewed["access_token"]).expect(200)
    public.get("/api/auth/me", two["access_token"]).expect(401)
    accounts.close()
    return ""
