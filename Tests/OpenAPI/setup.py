"""The set-up for the checks against the description: callers, users and their connected accounts."""

import dataclasses
import json
import urllib.request

import accounts
import harness

SERVER_CLIENT = "1234-server.apps.googleusercontent.com"
SERVER_SECRET = "the-secret-of-the-server"


@dataclasses.dataclass
class Setup:
    """The listeners, users that the generated requests may change, and one whose grant stays intact."""

    public_port: int
    internal_port: int
    sandbox: str
    user: str
    google_user: str
    vended_user: str
    retried_user: str
    ended_user: str
    scopes: list
    seen: str

    @classmethod
    def set_up(cls, deployment, internal_port):
        """Lets the users connect, through the worker itself."""
        sandbox = deployment.sandbox
        names = user, vended, retried, ended = "some-user", "vended-user", "retried-user", "ended-user"
        grants = [sandbox.create(email=f"{name}@gmail.com", scope=accounts.WHOLE_SCOPE)[0] for name in names]
        for name, grant in zip(names, grants, strict=True):
            deployment.connect(grant, accounts.user_token(name)).expect(201)
        return cls(
            public_port=deployment.port,
            internal_port=internal_port,
            sandbox=sandbox.url,
            user=user,
            google_user=grants[0]["sub"],
            vended_user=vended,
            retried_user=retried,
            ended_user=ended,
            scopes=grants[1]["scope"].split(),
            seen=str(deployment.fixture.folder / "seen"),
        )

    @classmethod
    def from_fields(cls, fields):
        return cls(**fields)

    @property
    def fields(self):
        return dataclasses.asdict(self)

    def control(self, path, body):
        """The sandbox's answer to a control request."""
        data = json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.sandbox}/control/{path}", data=data, timeout=30) as answer:
            return json.load(answer)

    def access_token(self):
        """A new access token of the user's account: a request that disconnects the user may have revoked the others."""
        grant = {"email": f"{self.user}@gmail.com", "sub": self.google_user, "scope": accounts.WHOLE_SCOPE}
        return self.control("grants", {"grants": [grant]})[0]["access_token"]

    def sign_in(self):
        """A new session of the app."""
        listener = accounts.Listener(self.public_port)
        return listener.post("/api/auth/mobile/google", {"access_token": self.access_token()}).expect(200).json

    def code(self):
        """A new code of the user's account, for the server."""
        grant = {
            "email": f"{self.user}@gmail.com", "sub": self.google_user, "scope": accounts.WHOLE_SCOPE,
            "client_id": SERVER_CLIENT, "client_secret": SERVER_SECRET,
        }
        return self.control("codes", grant)["code"]

    def id_token(self, number, nonce):
        """A new ID token of the user's account."""
        claims = {"sub": self.google_user, "email": f"{self.user}@gmail.com", "aud": harness.CLIENT, "jti": str(number)}
        return self.control("id-tokens", {**claims, "nonce": nonce or ""})["id_token"]

    def grant(self):
        """A new grant of the app's client at Google, whose tokens no one has stored."""
        body = json.dumps({"count": 1, "prefix": "stored"}).encode()
        with urllib.request.urlopen(f"{self.sandbox}/control/grants", data=body, timeout=30) as answer:
            return json.load(answer)[0]

    def known_user(self, name):
        """A user that the worker knows by a token of the app."""
        accounts.Listener(self.public_port).get("/v1/user/me", accounts.user_token(name)).expect(200)
        return name

    def vended_token(self):
        """The token that is vended now."""
        listener = accounts.Listener(self.internal_port)
        return (
            listener.get(f"/v1/grants/{self.vended_user}/token", accounts.SERVICE_KEY).expect(200).json["access_token"]
        )

    def security_event(self):
        """A verification event signed like Google's, which shows that events arrive."""
        body = {"type": "verification", "state": "here", "aud": harness.CLIENT}
        return self.control("security-events", body)["token"]
