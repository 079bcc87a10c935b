"""Answers that generated requests do not cause: outages, dead grants, deleted users, floods and malformed requests."""

import hashlib
import time

import accounts

LIMITED_KEY = "a-credential-with-limits-of-32-bytes"


class Scenes:
    """Plays the scenes against the worker, and keeps each answer with its operation."""

    def __init__(self, home):
        self.home = home
        self.answers = []

    def see(self, status, operation, method, path, body=None, bearer=None, listener=None, **more):
        answer = (listener or self.home.public).call(method, path, body, bearer, **more)
        answer.expect(status)
        self.answers.append(
            {
                "method": method,
                "path": operation,
                "status": status,
                "headers": answer.headers,
                "body": answer.body.decode(errors="replace"),
            }
        )

    def see_public(self, status, method, path, body=None, bearer=None, **more):
        self.see(status, path, method, path, body, bearer, **more)

    def see_vending(self, status, user, query="", bearer=accounts.SERVICE_KEY):
        path = f"/v1/grants/{user}/token"
        self.see(status, "/v1/grants/{user_id}/token", "GET", path + query, None, bearer, listener=self.home.internal)

    def see_renewal(self, status, user, token):
        path = f"/v1/grants/{user}/token/refresh"
        body = {"access_token": token}
        operation = "/v1/grants/{user_id}/token/refresh"
        self.see(status, operation, "POST", path, body, accounts.SERVICE_KEY, listener=self.home.internal)

    def connected(self, user):
        """A user who has connected an account, and the grant at Google."""
        grant = self.home.sandbox.create(email=f"{user}@gmail.com", scope=accounts.WHOLE_SCOPE)[0]
        self.home.connect(grant, accounts.user_token(user)).expect(201)
        return grant

    def tokens(self):
        """One token of every kind that is refused."""
        now = int(time.time())
        stale = accounts.token({"sub": "stale", "iat": now - 7200, "exp": now - 3600})
        for method, path in (("GET", "/v1/user/me"), ("DELETE", "/v1/user/me"), ("GET", "/api/auth/me")):
            self.see_public(401, method, path)
            self.see_public(401, method, path, bearer=stale)
            self.see_public(401, method, path, bearer="no.token.this")
        self.see_public(401, "POST", "/api/auth/refresh", {"refresh_token": "never made here"})
        self.see_public(401, "POST", "/api/auth/logout", {"refresh_token": "never made here"})

    def deletion(self):
        grant, bearer = self.connected("deleted"), accounts.user_token("deleted")
        self.see_public(200, "GET", "/v1/user/me", bearer=bearer)
        self.see_public(200, "DELETE", "/v1/user/me", bearer=bearer)
        # The first answer may have been lost.
        self.see_public(200, "DELETE", "/v1/user/me", bearer=bearer)
        for method, path in (("GET", "/v1/user/me"), ("DELETE", "/v1/auth/gmail-tokens")):
            self.see_public(404, method, path, bearer=bearer)
        self.see_public(404, "POST", "/v1/auth/gmail-tokens", {"access_token": grant["access_token"]}, bearer)
        self.see_vending(404, "deleted")

    def switch(self):
        """Another account, and finally none."""
        bearer = accounts.user_token("switching")
        self.see_public(200, "GET", "/v1/user/me", bearer=bearer)
        self.connected("switching")
        other = self.home.sandbox.create(email="other@gmail.com", scope=accounts.WHOLE_SCOPE)[0]
        self.see_public(201, "POST", "/v1/auth/gmail-tokens", {"access_token": other["access_token"]}, bearer)
        self.see_public(200, "DELETE", "/v1/auth/gmail-tokens", bearer=bearer)
        self.see_public(200, "GET", "/v1/user/me", bearer=bearer)
        self.see_vending(409, "switching")

    def limits(self):
        self.connected("limited")
        self.see_vending(200, "limited", "?scope=openid", LIMITED_KEY)
        self.see_vending(403, "limited", "", LIMITED_KEY)
        self.see_vending(403, "limited", "?scope=https://www.googleapis.com/auth/drive")
        self.see_vending(400, "limited", "?min_ttl=soon")
        self.see_vending(401, "limited", bearer="unknown")

    def death(self):
        """A grant that Google ends, and one that an outage hides."""
        grant, hidden = self.connected("dead"), self.connected("hidden")
        self.home.sandbox.change(grant, revoked=True)
        self.home.expire("dead", "hidden")
        self.see_vending(409, "dead")
        self.see_renewal(409, "dead", grant["access_token"])
        self.see_public(200, "GET", "/v1/user/me", bearer=accounts.user_token("dead"))
        self.home.sandbox.settings(outage="reset")
        self.see_vending(503, "hidden")
        self.see_renewal(503, "hidden", hidden["access_token"])
        self.see_public(
            502, "POST", "/v1/auth/gmail-tokens", {"access_token": "unheard"}, accounts.user_token("hidden")
        )
        self.see_public(502, "POST", "/api/auth/mobile/google", {"access_token": "unheard"})
        self.see_public(200, "GET", "/v1/user/me", bearer=accounts.user_token("hidden"))
        for path in ("/readyz", "/healthz", "/status", "/metrics"):
            self.see(200, path, "GET", path, listener=self.home.internal)
        self.home.sandbox.settings(outage="none")

    def size(self):
        """Requests that are too large, before any route handles them."""
        huge = {"access_token": "a" * 70_000}
        for path in ("/v1/auth/gmail-tokens", "/api/auth/mobile/google", "/v1/google/security-events"):
            self.see_public(413, "POST", path, huge)
            self.see(414, path, "POST", f"{path}?{'q' * 9_000}", {})
            self.see_public(431, "POST", path, {}, headers={"X-Long": "h" * 18_000})
        self.see(414, "/status", "GET", f"/status?{'q' * 9_000}", listener=self.home.internal)

    def flood(self):
        """More calls to Google than one address may cause; the limit is low here."""
        bearer = accounts.user_token("flooding")
        for path in ("/v1/auth/gmail-tokens", "/api/auth/mobile/google"):
            for _ in range(3):
                self.home.public.post(path, {"access_token": "unheard"}, bearer)
            self.see_public(429, "POST", path, {"access_token": "unheard"}, bearer)

    def silence(self, event):
        """A security event while Google's keys are unavailable, sent to a worker that has not fetched them yet."""
        self.home.sandbox.settings(outage="reset")
        self.see_public(503, "POST", "/v1/google/security-events", event)
        self.home.sandbox.settings(outage="none")


def services():
    """The services file: one service with access to every scope, and one that must name a scope."""
    whole = {"scopes": ["*"], "users": ["*"]}
    return [
        {"name": "mailer", "credential_sha256": hashlib.sha256(accounts.SERVICE_KEY.encode()).hexdigest(), **whole},
        {
            "name": "limited",
            "credential_sha256": hashlib.sha256(LIMITED_KEY.encode()).hexdigest(),
            "scopes": ["openid"],
            "users": ["*"],
        },
    ]
