"""The app's users sign in elsewhere: tokens of a login's keys, services that act for a user who is present, and ID
tokens of Google."""

import base64
import hashlib
import http.server
import json
import subprocess
import threading
import time
import urllib.parse

from accounts import SERVICE_KEY, Accounts, encode, token, user_token
from expectations import wait_for
from harness import CLIENT

ISSUER = "https://login.example/"
ASSISTANT_KEY = "assistant-credential-of-32-bytes-or-more"
TYPE = "urn:ietf:params:oauth:token-type:"


class Key:
    """A key of the login, made and used by the command openssl."""

    def __init__(self, folder, name, algorithm):
        self.name, self.algorithm = name, algorithm
        self.path = folder / f"{name}.pem"
        kind, option = ("RSA", "rsa_keygen_bits:2048") if algorithm == "RS256" else ("EC", "ec_paramgen_curve:P-256")
        self.openssl("genpkey", "-algorithm", kind, "-pkeyopt", option, "-out", self.path)
        der = self.openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        use = {"kid": name, "use": "sig", "alg": algorithm}
        if algorithm == "RS256":
            modulus = self.openssl("rsa", "-in", self.path, "-noout", "-modulus").decode().strip().split("=")[1]
            self.modulus = bytes.fromhex(modulus)
            self.entry = {**use, "kty": "RSA", "n": encode(self.modulus), "e": "AQAB"}
        else:
            self.entry = {**use, "kty": "EC", "crv": "P-256", "x": encode(der[-64:-32]), "y": encode(der[-32:])}

    @staticmethod
    def openssl(*arguments, stdin=None):
        return subprocess.run(["openssl", *map(str, arguments)], input=stdin, capture_output=True, check=True).stdout

    def sign(self, claims, **header):
        parts = [{"alg": self.algorithm, "kid": self.name, **header}, claims]
        signed = ".".join(encode(json.dumps(part).encode()) for part in parts)
        signature = self.openssl("dgst", "-sha256", "-sign", self.path, stdin=signed.encode())
        if self.algorithm == "ES256":
            # Two numbers of 32 bytes instead of OpenSSL's structure.
            numbers, rest = [], signature[2:]
            while rest:
                numbers.append(rest[2 : 2 + rest[1]].lstrip(b"\0").rjust(32, b"\0"))
                rest = rest[2 + rest[1] :]
            signature = b"".join(numbers)
        return f"{signed}.{encode(signature)}"


class Login(http.server.ThreadingHTTPServer):
    """A login that publishes its keys."""

    daemon_threads = True

    def __init__(self, *keys):
        super().__init__(("127.0.0.1", 0), LoginRequest)
        self.keys, self.is_down, self.requests = list(keys), False, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/.well-known/jwks.json"


class LoginRequest(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        body = json.dumps({"keys": [key.entry for key in self.server.keys]}).encode()
        self.send_response(503 if self.server.is_down else 200)
        self.send_header("Cache-Control", "public, max-age=600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def claims(user, **more):
    now = int(time.time())
    return {"sub": user, "iss": ISSUER, "aud": "app", "iat": now, "exp": now + 3600, **more}


def scenario(fixture):
    first, elliptic, second = [
        Key(fixture.folder, name, algorithm) for name, algorithm in (("a", "RS256"), ("b", "ES256"), ("c", "RS256"))
    ]
    login = Login(first, elliptic)
    fixture.sandbox.settings(lifetime=3600)
    services = [service("mailer", SERVICE_KEY, ["*"]), service("assistant", ASSISTANT_KEY, "present")]
    flags = ["--app-keys", login.url, "--app-issuer", ISSUER, "--app-audience", "app"]
    accounts = Accounts(fixture, *flags, services=services, start=False)
    report = fixture.run("doctor", *accounts.extra, expect=None).stdout
    assert "has 2 keys (1 RS256, 1 ES256), kept for 10 min" in report, "doctor says what keys it found"
    accounts.start()
    before = login.requests

    ada = first.sign(claims("ada"))
    accounts.connect(fixture.sandbox.create(email="ada@gmail.com")[0], ada).expect(201)
    assert accounts.is_connected(elliptic.sign(claims("ada"))), "both algorithms name one user"
    refused(accounts, first, elliptic)
    assert login.requests == before + 1, "the keys are fetched once"
    login.keys = [elliptic, second]

    present(fixture, accounts, ada, elliptic)
    id_tokens(fixture, accounts)

    new = second.sign(claims("ada"))
    wait_for(lambda: accounts.public.get("/v1/user/me", new).status == 200, 90, "the new key is fetched")
    early = accounts.public.get("/v1/user/me", ada).expect(503)
    assert 1 <= int(early.headers["retry-after"]) <= 60, "only a later fetch shows that a key is gone"
    assert login.requests == before + 2, "an unknown key is looked up once a minute"
    accounts.worker.stop()

    without_secret(fixture, accounts, login, new)
    for log in fixture.folder.glob("*.log"):
        content = log.read_text(errors="replace")
        assert not [text for text in (ada, new) if text in content], f"{log.name} shows no token"
    accounts.close()
    login.shutdown()
    return ""


def service(name, key, users):
    digest = hashlib.sha256(key.encode()).hexdigest()
    return {"name": name, "credential_sha256": digest, "scopes": ["*"], "users": users}


def refused(accounts, key, elliptic):
    """Tokens that are not the login's, or not for this app."""

    def code(bearer):
        return accounts.public.get("/v1/user/me", bearer).expect(401).json["error"]["code"]

    good = claims("ada")
    for change in ({"iss": "https://other.example/"}, {"aud": "other"}, {"aud": None, "client_id": "app"}):
        assert code(key.sign({**good, **change})) == "INVALID_TOKEN", f"{change} is refused"
    assert code(key.sign({**good, "exp": int(time.time()) - 1})) == "TOKEN_EXPIRED", "an expired one is named so"
    for secret in (key.modulus, encode(key.modulus).encode(), key.path.read_bytes()):
        forged = token(good, secret.decode("latin-1"), {"alg": "HS256", "typ": "JWT", "kid": key.name})
        assert code(forged) == "INVALID_TOKEN", "a public key is no shared secret"
    head, body, signature = key.sign(good).split(".")
    unsigned = encode(json.dumps({"alg": "none", "kid": key.name}).encode())
    for forged in (f"{unsigned}.{body}.", f"{unsigned}.{body}.{signature}", f"{head}.{body}.{signature[:-8]}AAAAAAAA"):
        assert code(forged) == "INVALID_TOKEN", "an unsigned or changed token is refused"
    assert code(elliptic.sign(good, alg="RS256")) == "INVALID_TOKEN", "the algorithm is that of the key"
    assert code(elliptic.sign(good, kid=key.name)) == "INVALID_TOKEN", "the key is the one that the token names"
    assert code(user_token("ada")) == "INVALID_TOKEN", "a token of the shared secret needs the issuer too"
    accounts.public.get("/v1/user/me", user_token("ada", iss=ISSUER, aud="app")).expect(200)


def present(fixture, accounts, bearer, key):
    """A service that gets tokens only with the user's own token."""

    def exchange(subject, kind="jwt"):
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "client_id": "assistant",
            "client_secret": ASSISTANT_KEY, "subject_token": subject, "subject_token_type": TYPE + kind,
        }
        return accounts.internal.post(
            "/oauth2/token", urllib.parse.urlencode(form), headers={"Content-Type": "application/x-www-form-urlencoded"}
        )

    vended = accounts.vend("ada").expect(200).json["access_token"]
    assert exchange(bearer).expect(200).json["access_token"] == vended, "the user's own token is enough"
    assert exchange(bearer, "access_token").expect(200).json["issued_token_type"] == TYPE + "access_token", (
        "the type can also be that of an access token"
    )
    assert exchange("ada", "refresh_token").expect(400).json["error"] == "unauthorized_client", "a name is not"
    accounts.vend("ada", bearer=ASSISTANT_KEY).expect(403)
    accounts.internal.post("/v1/grants/ada/token/refresh", {"access_token": vended}, ASSISTANT_KEY).expect(403)
    accounts.internal.get("/users?user=ada", ASSISTANT_KEY).expect(403)
    for subject in ("ada", key.sign(claims("ada", iss="https://other.example/")), user_token("ada")):
        assert exchange(subject).expect(400).json["error"] == "invalid_request", "only a valid token counts"
    events = accounts.worker.events("vend", service="assistant")
    assert [event["user"] for event in events if event["outcome"] == "served"] == ["present"] * 2, "the audit says so"
    assert accounts.worker.events("vend", service="mailer")[0]["user"] == "named", "the audit names other requests"


def id_tokens(fixture, accounts):
    """A sign-in with an ID token, verified offline, once."""

    def sign_in(body=None, **changes):
        grant = {"sub": "g-ada", "email": "ada@gmail.com", "aud": CLIENT, "azp": CLIENT, "nonce": "n-1", **changes}
        id_token = fixture.sandbox.call("/control/id-tokens", grant)["id_token"]
        return id_token, accounts.public.post("/api/auth/mobile/google", {"id_token": id_token, **(body or {})})

    id_token, answer = sign_in({"nonce": "n-1"})
    me = accounts.public.get("/api/auth/me", answer.expect(200).json["access_token"]).expect(200).json
    assert me["email"] == "ada@gmail.com", "the session is the account's owner's, and needs no issuer"
    accounts.public.post("/api/auth/refresh", {"refresh_token": answer.json["refresh_token"]}).expect(200)
    answer = accounts.public.post("/api/auth/mobile/google", {"id_token": id_token, "nonce": "n-1"}).expect(400)
    assert answer.json["detail"] == "Invalid Google ID token", "a second use is refused"
    for body, changes in (
        ({"nonce": "n-2"}, {}), ({}, {"aud": "other", "azp": "other"}), ({}, {"iss": "https://evil.example"}),
        ({}, {"exp": int(time.time()) - 1}), ({}, {"email_verified": False}),
    ):
        sign_in(body, **changes)[1].expect(400)
    head, body, signature = sign_in()[0].split(".")
    changed = json.loads(base64.urlsafe_b64decode(body + "==")) | {"sub": "g-eve"}
    forged = f"{head}.{encode(json.dumps(changed).encode())}.{signature}"
    accounts.public.post("/api/auth/mobile/google", {"id_token": forged}).expect(400)


def without_secret(fixture, accounts, login, bearer):
    """A worker that issues no sessions, and whose login is down when it starts."""
    at = accounts.extra.index("--jwt-secret-file")
    accounts.extra = accounts.extra[:at] + accounts.extra[at + 2 :]
    login.is_down = True
    accounts.start()
    answer = accounts.public.get("/v1/user/me", bearer).expect(503)
    assert 1 <= int(answer.headers["retry-after"]) <= 10, "the app is asked to come again"
    assert accounts.public.get("/api/auth/me", bearer).expect(503).headers["retry-after"], "on each route"
    accounts.public.get("/v1/user/me", user_token("ada", iss=ISSUER, aud="app")).expect(401)
    accounts.public.post("/api/auth/mobile/google", {"access_token": "ya29.a"}).expect(404)
    accounts.public.post("/api/auth/refresh", {"refresh_token": "a"}).expect(404)
    login.is_down = False
    wait_for(lambda: accounts.public.get("/v1/user/me", bearer).status == 200, 60, "the keys are fetched again")
    assert accounts.is_connected(bearer), "the user is connected as before"
