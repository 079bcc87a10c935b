"""Answers that generated requests do not cause: outages, dead grants, deleted users, floods and malformed requests."""

import hashlib
import re
import time
import urllib.parse

import accounts
from harness import CLIENT

CONNECTIONS_PER_USER = 3
LIMITED_KEY = "a-credential-with-limits-of-32-bytes"
NARROW_KEY = "a-credential-for-default-of-32-bytes"
LOGIN_ROUTES = [
    ("POST", "/v1/auth/gmail-tokens"), ("DELETE", "/v1/auth/gmail-tokens"), ("GET", "/v1/user/me"),
    ("DELETE", "/v1/user/me"), ("DELETE", "/v1/delete/me"), ("GET", "/api/auth/me"), ("POST", "/api/auth/logout"),
    ("POST", "/v1/connections/google"), ("GET", "/v1/connections"), ("GET", "/v1/connections/default"),
    ("DELETE", "/v1/connections/default"),
]
OPERATOR_KEY = "a-credential-of-a-person-of-32-bytes"
MANAGER_KEY = "a-credential-of-the-backend-32-bytes"


class RareAnswers:
    """Sends requests that cause rare answers, and keeps each answer with its operation."""

    def __init__(self, deployment):
        self.deployment = deployment
        self.answers = []

    def request(self, status, operation, method, path, body=None, bearer=None, listener=None, **more):
        answer = (listener or self.deployment.public).call(method, path, body, bearer, **more)
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
        return answer

    def request_public(self, status, method, path, body=None, bearer=None, **more):
        operation = re.sub("^/v1/connections/(?!google$).*", "/v1/connections/{id}", path)
        return self.request(status, operation, method, path, body, bearer, **more)

    def request_token(self, status, user, query="", bearer=accounts.SERVICE_KEY):
        path = f"/v1/grants/{user}/token"
        operation = "/v1/grants/{user_id}/token"
        self.request(status, operation, "GET", path + query, None, bearer, listener=self.deployment.internal)

    def request_renewal(self, status, user, token):
        path = f"/v1/grants/{user}/token/refresh"
        body = {"access_token": token}
        operation = "/v1/grants/{user_id}/token/refresh"
        self.request(status, operation, "POST", path, body, accounts.SERVICE_KEY, listener=self.deployment.internal)

    def request_oauth(self, status, user, secret=accounts.SERVICE_KEY, **more):
        """Asks the token endpoint, as an OAuth library does."""
        form = {"grant_type": "refresh_token", "refresh_token": user, "client_id": "mailer", "client_secret": secret}
        body = urllib.parse.urlencode({**form, **more})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        path = "/oauth2/token"
        self.request(status, path, "POST", path, body, listener=self.deployment.internal, headers=headers)

    def request_user(self, status, query, bearer=OPERATOR_KEY):
        """Looks up a user, as an operator does."""
        self.request(status, "/users", "GET", f"/users{query}", None, bearer, listener=self.deployment.internal)

    def manage(self, status, method, path, body=None, bearer=MANAGER_KEY):
        """Manages a grant or a user, as a backend does."""
        names = path.split("?")[0].split("/")
        if len(names) > 3:
            names[3] = "{user_id}"
        return self.request(status, "/".join(names), method, path, body, bearer, listener=self.deployment.internal)

    def connected(self, user):
        """A user who has connected an account, and the grant at Google."""
        grant = self.deployment.sandbox.create(email=f"{user}@gmail.com", scope=accounts.WHOLE_SCOPE)[0]
        self.deployment.connect(grant, accounts.user_token(user)).expect(201)
        return grant

    def tokens(self):
        """One token of every kind that is refused."""
        now = int(time.time())
        stale = accounts.token({"sub": "stale", "iat": now - 7200, "exp": now - 3600})
        for method, path in (
            ("GET", "/v1/user/me"), ("DELETE", "/v1/user/me"), ("GET", "/api/auth/me"), ("GET", "/v1/connections"),
            ("GET", "/v1/connections/default"), ("DELETE", "/v1/connections/default"),
        ):
            self.request_public(401, method, path)
            self.request_public(401, method, path, bearer=stale)
            self.request_public(401, method, path, bearer="no.token.this")
        # The keys of the login cannot be fetched.
        unknown = accounts.token({"sub": "a", "exp": now + 3600}, header={"alg": "RS256", "kid": "a"})
        for method, path in LOGIN_ROUTES:
            body = {"access_token": "a"} if method == "POST" and path != "/api/auth/logout" else None
            self.request_public(503, method, path, body, bearer=unknown)
        self.request_public(401, "POST", "/api/auth/refresh", {"refresh_token": "never made here"})
        self.request_public(401, "POST", "/api/auth/logout", {"refresh_token": "never made here"})
        former = accounts.token({"sub": "not imported yet", "aud": "app", "type": "refresh", "exp": now + 3600})
        self.request_public(503, "POST", "/api/auth/refresh", {"refresh_token": former})

    def id_tokens(self):
        """A sign-in with an ID token, which counts once."""
        account = {"sub": "g-id", "email": "id@gmail.com", "aud": CLIENT}
        body = self.deployment.sandbox.call("/control/id-tokens", account)
        self.request_public(200, "POST", "/api/auth/mobile/google", body)
        self.request_public(400, "POST", "/api/auth/mobile/google", body)

    def deletion(self):
        grant, bearer = self.connected("deleted"), accounts.user_token("deleted")
        self.request_public(200, "GET", "/v1/user/me", bearer=bearer)
        self.request_public(200, "DELETE", "/v1/user/me", bearer=bearer)
        # The first answer may have been lost.
        self.request_public(200, "DELETE", "/v1/user/me", bearer=bearer)
        for method, path in (
            ("GET", "/v1/user/me"), ("DELETE", "/v1/auth/gmail-tokens"), ("GET", "/v1/connections"),
            ("GET", "/v1/connections/default"), ("DELETE", "/v1/connections/default"),
        ):
            self.request_public(404, method, path, bearer=bearer)
        for path in ("/v1/auth/gmail-tokens", "/v1/connections/google"):
            self.request_public(404, "POST", path, {"access_token": grant["access_token"]}, bearer)
        self.request_token(404, "deleted")

    def switch(self):
        """Another account, and finally none."""
        bearer = accounts.user_token("switching")
        self.request_public(200, "GET", "/v1/user/me", bearer=bearer)
        self.connected("switching")
        other = self.deployment.sandbox.create(email="other@gmail.com", scope=accounts.WHOLE_SCOPE)[0]
        self.request_public(201, "POST", "/v1/auth/gmail-tokens", {"access_token": other["access_token"]}, bearer)
        foreign = {"access_token": other["access_token"], "server_auth_code": "4/0Aforeign"}
        self.request_public(400, "POST", "/v1/auth/gmail-tokens", foreign, bearer)
        self.request_public(200, "DELETE", "/v1/auth/gmail-tokens", bearer=bearer)
        self.request_public(200, "GET", "/v1/user/me", bearer=bearer)
        self.request_token(409, "switching")

    def connections(self):
        """Connections of one user, and the accounts that they do not take."""
        bearer = accounts.user_token("connecting")
        home, work, third, fourth = (
            self.deployment.sandbox.create(email=f"{name}@gmail.com", scope=accounts.WHOLE_SCOPE)[0]
            for name in ("home", "work", "third", "fourth")
        )

        def add(status, grant, **fields):
            body = {"access_token": grant["access_token"], "refresh_token": grant["refresh_token"], **fields}
            return self.request_public(status, "POST", "/v1/connections/google", body, bearer)

        self.request_public(200, "GET", "/v1/connections", bearer=bearer)
        self.request_public(404, "GET", "/v1/connections/default", bearer=bearer)
        add(404, home, connection="unknown")
        add(201, home, connection="new")
        second = add(201, work, connection="new").json["data"]["connection"]["id"]
        self.refuse(add, third, "ACCOUNT_SWITCH", on_switch="refuse")
        self.refuse(add, third, "ACCOUNT_MISMATCH", connection="default")
        self.refuse(add, third, "ACCOUNT_MISMATCH", connection=second)
        assert CONNECTIONS_PER_USER == 3, "one more account than the third is one too many"
        left = add(201, third, connection="new").json["data"]["connection"]["id"]
        self.refuse(add, fourth, "TOO_MANY_CONNECTIONS", connection="new")
        add(400, home, connection="a b")
        add(400, home, on_switch="maybe")
        for path in ("/v1/connections", f"/v1/connections/{second}", "/v1/user/me"):
            self.request_public(200, "GET", path, bearer=bearer)
        # The first answer may have been lost.
        for _ in range(2):
            self.request_public(200, "DELETE", f"/v1/connections/{second}", bearer=bearer)
        for method in ("GET", "DELETE"):
            self.request_public(404, method, "/v1/connections/unknown", bearer=bearer)
        # The account of another connection, by the old route: that one ends.
        body = {"access_token": third["access_token"]}
        self.request_public(201, "POST", "/v1/auth/gmail-tokens", body, bearer)
        error = self.refuse(add, third, "ACCOUNT_CONNECTED", connection=left)
        assert error["connection"] == "default", "the error names the connection that has the account"
        self.request_public(200, "GET", "/v1/connections", bearer=bearer)

    @staticmethod
    def refuse(add, grant, code, **fields):
        """Checks the code of a refusal: several codes have its status."""
        error = add(409, grant, **fields).json["error"]
        assert error["code"] == code, f"the refusal has the code {code}, and not {error['code']}"
        return error

    def connections_of_services(self):
        """Connections that services name, and those that their entries do not cover."""
        user = "connected-twice"
        home = self.connected(user)
        work = self.deployment.sandbox.create(email="twice@gmail.com", scope=accounts.WHOLE_SCOPE)[0]
        record = {"refresh_token": work["refresh_token"], "client_id": work["client_id"], "labels": {"tenant": "acme"}}
        path = f"/v1/grants/{user}"
        self.manage(201, "PUT", f"{path}?connection=work", record)
        same = {"refresh_token": "1//another-token-of-home", "client_id": CLIENT, "google_user_id": home["sub"]}
        refusal = self.manage(409, "PUT", f"{path}?connection=other", same).json
        assert refusal["error"] == "account_connected", "the account of the record is another connection"
        self.manage(400, "PUT", f"{path}?connection=work", {**record, "connection": "other"})
        # Labels alone.
        self.manage(200, "PUT", f"{path}?connection=work", {"labels": {"tenant": "zenith"}})
        self.manage(404, "PUT", f"{path}?connection=other", {"labels": {"tenant": "zenith"}})
        self.manage(400, "PUT", f"{path}?connection=work", {"labels": {"t" * 65: "zenith"}})
        self.manage(200, "GET", "/v1/grants?label=tenant=zenith")
        self.manage(400, "GET", "/v1/grants?label=tenant")
        self.manage(200, "GET", path)
        self.manage(200, "GET", f"{path}?connection=work")
        self.manage(404, "GET", f"{path}?connection=other")
        self.manage(400, "GET", f"{path}?connection=new")
        self.request_token(200, user, "?connection=work")
        self.request_token(404, user, "?connection=other")
        self.request_token(400, user, "?connection=a%20b")
        self.request_oauth(200, user, connection="work")
        self.request_oauth(400, user, connection="other")

        # A service for the connection `default` alone.
        self.request_token(200, user, bearer=NARROW_KEY)
        self.request_token(403, user, "?connection=work", NARROW_KEY)
        self.request_oauth(400, user, NARROW_KEY, client_id="narrow", connection="work")
        self.manage(200, "GET", "/v1/grants", bearer=NARROW_KEY)
        shown = self.manage(200, "GET", path, bearer=NARROW_KEY).json
        names = [one["connection"] for one in shown["connections"]]
        assert names == ["default"], "the service sees its connection alone"
        for method in ("GET", "PUT", "DELETE"):
            self.manage(403, method, f"{path}?connection=work", bearer=NARROW_KEY)
        self.manage(403, "POST", f"{path}/retry?connection=work", bearer=NARROW_KEY)
        # It would end all.
        self.manage(403, "DELETE", f"/v1/users/{user}", bearer=NARROW_KEY)
        self.manage(200, "DELETE", f"{path}?connection=work")

    def limits(self):
        self.connected("limited")
        self.request_token(200, "limited", "?scope=openid", LIMITED_KEY)
        self.request_token(403, "limited", "", LIMITED_KEY)
        self.request_token(403, "limited", "?scope=https://www.googleapis.com/auth/drive")
        self.request_token(400, "limited", "?min_ttl=soon")
        self.request_token(401, "limited", bearer="unknown")
        self.request_oauth(200, "limited", scope="openid")
        self.request_oauth(400, "limited", scope="https://www.googleapis.com/auth/drive")
        self.request_oauth(400, "limited", grant_type="password")
        self.request_oauth(401, "limited", secret="unknown")
        self.request_oauth(413, "limited", x="x" * 70_000)
        limited = {"client_id": "limited", "secret": LIMITED_KEY}
        self.request_oauth(200, "limited", scope="openid", **limited)
        self.request_oauth(400, "limited", **limited)
        exchange = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": "limited",
            "subject_token_type": "urn:ietf:params:oauth:token-type:refresh_token",
        }
        self.request_oauth(200, "limited", **exchange)
        self.request_oauth(400, "limited", audience="gmail", **exchange)
        present = {**exchange, "subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}
        self.request_oauth(200, "limited", **{**present, "subject_token": accounts.user_token("limited")})
        self.request_oauth(400, "limited", **present)

    def lookups(self):
        """Users that an operator looks up."""
        self.connected("looked-up")
        self.request_user(200, "?user=looked-up")
        self.request_user(200, "?user=unknown")
        self.request_user(400, "")
        self.request_user(400, "?user=a&user=b")
        self.request_user(401, "?user=looked-up", bearer=None)
        self.request_user(403, "?user=looked-up", bearer=accounts.SERVICE_KEY)
        internal = {"listener": self.deployment.internal}
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for status, body, bearer in (
            (200, "user=looked-up", OPERATOR_KEY), (400, "", OPERATOR_KEY), (401, "user=looked-up", None),
            (403, "change=forged", OPERATOR_KEY),
        ):
            self.request(status, "/users", "POST", "/users", body, bearer, headers=form, **internal)
        for status, query, bearer in (
            (200, "?state=active&reason=", OPERATOR_KEY), (400, "?state=ended", OPERATOR_KEY),
            (400, "?states=active", OPERATOR_KEY), (401, "", None),
            (403, "", accounts.SERVICE_KEY),
        ):
            self.request(status, "/grants", "GET", f"/grants{query}", None, bearer, **internal)
        self.request_token(403, "looked-up", bearer=OPERATOR_KEY)

    def administration(self):
        """Grants that a backend lists, stores, tries again and ends."""
        self.connected("managed")
        self.manage(200, "GET", "/v1/grants?limit=1")
        self.manage(200, "GET", "/v1/grants?state=suspended")
        self.manage(400, "GET", "/v1/grants?limit=0")
        self.manage(400, "GET", "/v1/grants?client_id=x")
        self.manage(400, "DELETE", "/v1/grants/managed?dry_run=true")
        self.manage(401, "GET", "/v1/grants", bearer=None)
        self.manage(200, "GET", "/v1/grants/managed")
        for method, path in (
            ("GET", "/v1/grants/managed"), ("PUT", "/v1/grants/managed"), ("DELETE", "/v1/grants/managed"),
            ("POST", "/v1/grants/managed/retry"), ("DELETE", "/v1/users/managed"),
        ):
            self.manage(403, method, path, bearer=accounts.SERVICE_KEY)
            self.manage(401, method, path, bearer="unknown")
        self.manage(400, "PUT", "/v1/grants/managed", {"scope": "openid"})
        tokenless = {"access_token": "an-access-token", "client_id": CLIENT, "scope": "openid"}
        record = {**tokenless, "refresh_token": "1//one-that-google-does-not-know"}
        self.manage(201, "PUT", "/v1/grants/stored", record)
        self.manage(200, "PUT", "/v1/grants/stored", tokenless)
        self.manage(200, "POST", "/v1/grants/managed/retry")
        self.manage(200, "DELETE", "/v1/grants/stored")
        self.manage(409, "PUT", "/v1/grants/stored", record)
        self.manage(409, "POST", "/v1/grants/stored/retry")
        self.manage(201, "PUT", "/v1/grants/tokenless", tokenless)
        self.manage(200, "GET", "/v1/grants/tokenless")
        self.manage(409, "POST", "/v1/grants/tokenless/retry")
        self.manage(200, "DELETE", "/v1/users/managed")
        self.manage(409, "PUT", "/v1/grants/managed", record)
        for method, path in (
            ("GET", "/v1/grants/unknown"), ("DELETE", "/v1/grants/unknown"), ("POST", "/v1/grants/unknown/retry"),
            ("DELETE", "/v1/users/managed"),
        ):
            self.manage(404, method, path)
        self.manage(413, "PUT", "/v1/grants/stored", {"refresh_token": "a" * 70_000})

    def death(self):
        """A grant that Google ends, and one that an outage hides."""
        grant, hidden = self.connected("dead"), self.connected("hidden")
        self.deployment.sandbox.change(grant, revoked=True)
        self.deployment.expire("dead", "hidden")
        self.request_token(409, "dead")
        self.request_oauth(400, "dead")
        self.request_renewal(409, "dead", grant["access_token"])
        self.request_public(200, "GET", "/v1/user/me", bearer=accounts.user_token("dead"))
        self.deployment.sandbox.settings(outage="reset")
        self.request_token(503, "hidden")
        self.request_oauth(503, "hidden")
        self.request_renewal(503, "hidden", hidden["access_token"])
        for path in ("/v1/auth/gmail-tokens", "/v1/connections/google"):
            self.request_public(502, "POST", path, {"access_token": "unreachable"}, accounts.user_token("hidden"))
        self.request_public(502, "POST", "/api/auth/mobile/google", {"access_token": "unreachable"})
        self.request_public(200, "GET", "/v1/user/me", bearer=accounts.user_token("hidden"))
        for path in ("/readyz", "/healthz", "/status", "/metrics", "/"):
            self.request(200, path, "GET", path, listener=self.deployment.internal)
        self.deployment.sandbox.settings(outage="none")

    def size(self):
        """Requests that are too large, before any route handles them."""
        huge = {"access_token": "a" * 70_000}
        for path in (
            "/v1/auth/gmail-tokens", "/v1/connections/google", "/api/auth/mobile/google", "/v1/google/security-events",
        ):
            self.request_public(413, "POST", path, huge)
            self.request(414, path, "POST", f"{path}?{'q' * 9_000}", {})
            self.request_public(431, "POST", path, {}, headers={"X-Long": "h" * 18_000})
        self.request(414, "/status", "GET", f"/status?{'q' * 9_000}", listener=self.deployment.internal)

    def flood(self):
        """More calls to Google, and more users, than one address may cause; the limit is low here."""
        bearer = accounts.user_token("flooding")
        for path in ("/v1/auth/gmail-tokens", "/v1/connections/google", "/api/auth/mobile/google"):
            for _ in range(3):
                self.deployment.public.post(path, {"access_token": "unreachable"}, bearer)
            self.request_public(429, "POST", path, {"access_token": "unreachable"}, bearer)

        # More new users than one address may store.
        for number in range(10):
            self.deployment.public.get("/v1/user/me", accounts.user_token(f"new-{number}"))
        for path in ("/v1/user/me", "/api/auth/me", "/v1/connections", "/v1/connections/default"):
            self.request_public(429, "GET", path, bearer=accounts.user_token("one-too-many"))

    def silence(self, event):
        """A security event while Google's keys are unavailable, sent to a worker that has not fetched them yet."""
        self.deployment.sandbox.settings(outage="reset")
        self.request_public(503, "POST", "/v1/google/security-events", event)
        self.deployment.sandbox.settings(outage="none")


def login(fixture):
    """The flags of a login that does not publish its keys."""
    return ["--app-keys", fixture.sandbox.url + "/no-keys", "--app-audience", "app"]


def services():
    """The services file: a service with access to every scope, one that must name a scope, an operator, one that
    manages grants, and one that gets and manages the connection `default` alone."""
    limits = {"scopes": ["*"], "users": ["*"]}
    return [
        {"name": "mailer", "credential_sha256": hashlib.sha256(accounts.SERVICE_KEY.encode()).hexdigest(), **limits},
        {
            "name": "limited",
            "credential_sha256": hashlib.sha256(LIMITED_KEY.encode()).hexdigest(),
            "scopes": ["openid"],
            "users": ["*"],
        },
        {
            "name": "jane",
            "credential_sha256": hashlib.sha256(OPERATOR_KEY.encode()).hexdigest(),
            "users": ["*"],
            "operator": True,
        },
        {
            "name": "backend",
            "credential_sha256": hashlib.sha256(MANAGER_KEY.encode()).hexdigest(),
            "users": ["*"],
            "manage": True,
        },
        {
            "name": "narrow",
            "credential_sha256": hashlib.sha256(NARROW_KEY.encode()).hexdigest(),
            "connections": ["default"],
            "manage": True,
            **limits,
        },
    ]
