"""The app, the other services and the backend, simulated against the real worker."""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import socket
import threading
import time
import urllib.parse

from expectations import wait_for
from ports import free_port

JWT_SECRET = "the app's own secret, which is long enough"
NOTICE_SECRET = "the secret that signs the notices, too"
SERVICE_KEY = "mailer-credential-of-32-bytes-or-more"
WHOLE_SCOPE = (
    "https://www.googleapis.com/auth/gmail.readonly https://www.googleapis.com/auth/userinfo.email "
    "https://www.googleapis.com/auth/userinfo.profile openid"
)


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(claims, secret=JWT_SECRET, header=None):
    """A JSON Web Token as PayPulse's login makes it."""
    head = encode(json.dumps(header or {"alg": "HS256", "typ": "JWT"}).encode())
    body = encode(json.dumps(claims).encode())
    mac = hmac.new(secret.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{encode(mac)}"


def user_token(user, **claims):
    now = int(time.time())
    usual = {"user_id": user, "email": f"{user}@paypulse.example", "aud": "app", "iat": now, "exp": now + 86_400}
    return token({**usual, **claims})


class Answer:
    """The answer to a request."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def expect(self, status):
        assert self.status == status, f"the answer has the expected status; its body: {self.body[:300]!r}"
        return self


def headers_of(response):
    """The headers by their names in lower case; values of one name are on lines of their own."""
    return {name.lower(): "\n".join(response.headers.get_all(name)) for name in response.headers}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self.path))


class Listener:
    """One of the worker's listeners, called over a connection for each request."""

    def __init__(self, address):
        self.address = address

    def connection(self):
        if isinstance(self.address, int):
            return http.client.HTTPConnection("127.0.0.1", self.address, timeout=60)
        return UnixConnection(self.address)

    def call(self, method, path, body=None, bearer=None, headers=None):
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        connection = self.connection()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, headers_of(answer), answer.read())
        finally:
            connection.close()

    def get(self, path, bearer=None, **more):
        return self.call("GET", path, bearer=bearer, **more)

    def post(self, path, body=None, bearer=None, **more):
        return self.call("POST", path, body, bearer, **more)

    def is_ready(self):
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False


class Backend(http.server.ThreadingHTTPServer):
    """A fake backend that checks the signature of each notice, keeps the notice, and can refuse some."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), BackendRequest)
        self.notices = []
        # The headers and the body of each accepted notice.
        self.requests = []
        self.refusals = 0
        self.forged = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/notices"

    def of(self, user):
        return [notice for notice in self.notices if notice["data"].get("user_id") == user]

    def wait_for(self, user, count, seconds=30):
        wait_for(lambda: len(self.of(user)) >= count, seconds, f"{count} notices about {user}")
        return self.of(user)


class BackendRequest(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        identity, moment = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        signed = f"{identity}.{moment}.".encode() + body
        mac = base64.b64encode(hmac.new(NOTICE_SECRET.encode(), signed, hashlib.sha256).digest()).decode()
        status = 204
        if f"v1,{mac}" not in self.headers["webhook-signature"].split(" ") or abs(time.time() - int(moment)) > 300:
            self.server.forged += 1
            status = 401
        elif self.server.refusals > 0:
            self.server.refusals -= 1
            status = 503
        else:
            self.server.notices.append(json.loads(body))
            self.server.requests.append((dict(self.headers), body.decode()))
        self.send_response(status)
        self.end_headers()

    def log_message(self, *arguments):
        pass


class Accounts:
    """A fixture with a worker that listens, and all that the worker needs for it."""

    def __init__(self, fixture, *extra, services=None, start=True):
        self.fixture = fixture
        self.sandbox = fixture.sandbox
        self.backend = Backend()
        self.port = free_port()
        self.socket = fixture.folder / "internal.sock"
        self.public = Listener(self.port)
        self.internal = Listener(self.socket)
        self.write("jwt", JWT_SECRET)
        self.write("notice", NOTICE_SECRET)
        entry = {
            "name": "mailer",
            "credential_sha256": hashlib.sha256(SERVICE_KEY.encode()).hexdigest(),
            "scopes": ["*"],
            "users": ["*"],
        }
        self.write("services.json", json.dumps({"services": services or [entry]}))
        self.extra = [
            "--listen", f"127.0.0.1:{self.port}", "--listen-internal", f"unix:{self.socket}",
            "--jwt-secret-file", fixture.folder / "jwt", "--services-file", fixture.folder / "services.json",
            "--notice-url", self.backend.url, "--notice-secret-file", fixture.folder / "notice",
            "--security-events-endpoint", self.sandbox.url + "/.well-known/risc-configuration",
            "--google-keys-endpoint", self.sandbox.url + "/oauth2/v3/certs",
            "--google-calls-per-minute", "100000", *extra,
        ]
        if not fixture.keys.exists():
            fixture.generate_keys()
        self.worker = self.start() if start else None

    def write(self, name, text):
        path = self.fixture.folder / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    def start(self, *extra, **more):
        self.worker = self.fixture.start(*self.extra, *extra, **more).wait_started()
        wait_for(self.is_ready, 60, "the listeners answer")
        return self.worker

    def is_ready(self):
        return self.internal.is_ready()

    # The app.

    def sign_in(self, grant):
        """Exchanges Google's token for the app's own pair."""
        answer = self.public.post("/api/auth/mobile/google", {"access_token": grant["access_token"]})
        return answer.expect(200).json

    def connect(self, grant, bearer, with_refresh_token=True, path="/v1/connections/google", **more):
        body = {"access_token": grant["access_token"], "expires_in": 3600, "scope": grant["scope"].split(), **more}
        if with_refresh_token:
            body["refresh_token"] = grant["refresh_token"]
        return self.public.post(path, body, bearer)

    def connect_as_paypulse(self, grant, bearer, **more):
        return self.connect(grant, bearer, path="/v1/auth/gmail-tokens", **more)

    def disconnect(self, bearer):
        return self.public.call("DELETE", "/v1/connections/default", bearer=bearer).expect(200)

    def profile(self, bearer):
        return self.public.get("/v1/user/me", bearer).expect(200).json["data"]

    def connection(self, bearer):
        """The user's connection `default`, which must exist."""
        return self.public.get("/v1/connections/default", bearer).expect(200).json["data"]["connection"]

    def is_connected(self, bearer):
        return self.connection(bearer)["state"] in ("active", "retrying")

    # Another service.

    def vend(self, user, min_ttl=60, bearer=SERVICE_KEY, **query):
        query = urllib.parse.urlencode({"min_ttl": min_ttl, **query}, doseq=True)
        return self.internal.get(f"/v1/grants/{urllib.parse.quote(user, safe='')}/token?{query}", bearer)

    def expire(self, *users):
        """Makes stored access tokens expire, and their grants due in an hour, so that only a caller causes a
        refresh."""
        now = int(time.time() * 1000)
        for user in users:
            self.fixture.write("UPDATE grants SET access_expires_at = ? WHERE user_id = ?", now - 60_000, user)
            self.fixture.set_due(now + 3_600_000, user)

    def close(self):
        if self.worker and self.worker.process.poll() is None:
            self.worker.stop()
        assert self.backend.forged == 0, "every notice has a valid signature"
        self.backend.shutdown()
