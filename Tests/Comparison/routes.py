"""A listening daemon: the answers of its routes, its metrics, events and messages, and the notices to the backend."""

import concurrent.futures
import contextlib
import json
import re
import sqlite3
import time
import urllib.parse

import accounts
import rare_answers
import setup
from accounts import SERVICE_KEY, user_token
from harness import CLIENT, Worker
from rare_answers import LIMITED_KEY, MANAGER_KEY, OPERATOR_KEY
from recording import as_lines, record_events
from stalled_audit import Reader
from tls import Authority, TLSListener

PUBLIC = [
    ("POST", "/v1/auth/gmail-tokens"), ("POST", "/v1/auth/gmail/store-tokens"), ("DELETE", "/v1/auth/gmail-tokens"),
    ("GET", "/v1/user/me"), ("DELETE", "/v1/user/me"), ("DELETE", "/v1/delete/me"),
    ("POST", "/api/auth/mobile/google"), ("POST", "/api/auth/refresh"), ("GET", "/api/auth/me"),
    ("POST", "/api/auth/logout"), ("GET", "/api/auth/status"), ("POST", "/v1/google/security-events"),
    ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/"), ("GET", "/v1/nothing"), ("GET", "/api/nothing"),
]
INTERNAL = [
    ("GET", "/v1/grants"), ("GET", "/v1/grants/ada"), ("PUT", "/v1/grants/ada"), ("DELETE", "/v1/grants/nobody"),
    ("POST", "/v1/grants/nobody/retry"), ("GET", "/v1/grants/ada/token"), ("POST", "/v1/grants/ada/token/refresh"),
    ("DELETE", "/v1/users/nobody"), ("POST", "/oauth2/token"), ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/status"), ("GET", "/metrics"), ("GET", "/"),
    ("GET", "/runbook"), ("GET", "/grants"), ("GET", "/users?user=ada"), ("POST", "/users"), ("GET", "/v1/nothing"),
]
# The members of each body, with good values.
BODIES = {
    "/v1/auth/gmail-tokens": {
        "access_token": "unknown", "refresh_token": "1//unknown", "expires_in": 3600, "scope": ["openid"],
        "server_auth_code": "4/0Aunknown", "expires_at": "2030-01-01T00:00:00Z",
    },
    "/api/auth/mobile/google": {"access_token": "unknown", "id_token": "no.id.token", "nonce": "nonce"},
    "/api/auth/refresh": {"refresh_token": "unknown"},
    "/api/auth/logout": {"refresh_token": "unknown"},
}
MANAGED = {
    "access_token": "an-access-token", "refresh_token": "1//unknown", "client_id": CLIENT, "scope": "openid",
    "expires_at": "2030-01-01T00:00:00Z", "expires_in": 3600, "google_user_id": "1", "google_email": "a@example.com",
}
WRONG_VALUES = [None, "", 1, -1, "x", "x" * 5000, [], {}, True, [1], "\u0000"]
WRONG_BODIES = [b"", b"{", b"[]", b"null", b'"text"', b"{}", b'{"access_token":"a","access_token":"b"}', b"\xff"]
# Headers that each answer has of its own.
OWN_HEADERS = {"date", "content-length"}


class Routes(rare_answers.RareAnswers):
    """Sends requests, and records each answer instead of checking it."""

    def __init__(self, deployment, recording, masked):
        super().__init__(deployment)
        self.recording = recording
        self.masked = masked
        self.masked_line = masked.line

    def request(self, status, operation, method, path, body=None, bearer=None, listener=None, **more):
        listener = listener or self.deployment.public
        answer = listener.call(method, path, body, bearer, **more)
        side = "public" if listener is self.deployment.public else "internal"
        self.record(side, method, path, body, bearer, answer)
        return answer

    def record(self, side, method, path, body, bearer, answer):
        headers = {name: value for name, value in answer.headers.items() if name not in OWN_HEADERS}
        lines = [f"{answer.status}", *(f"{name}: {value}" for name, value in sorted(headers.items())), ""]
        text = answer.body.decode(errors="replace")
        if "json" in answer.headers.get("content-type", ""):
            text = as_lines(text, numbers=path not in ("/status", "/readyz"))
        elif path == "/metrics":
            text = names_of_metrics(text)
        elif "html" in answer.headers.get("content-type", ""):
            text = parts_of_page(self.masked_line(text))
        if path.startswith("/v1/grants"):
            # How often the worker has refreshed a grant in the meantime; a list is in the order of the random ids.
            text = re.sub(r'("generation"|"last_success_at"): ("[^"]*"|null|\d+)', r"\1: ANY", text)
            text = text if "?" not in path else "\n".join(dict.fromkeys(re.sub(": .*", "", text).splitlines()))
        who = {SERVICE_KEY: "service", LIMITED_KEY: "limited", OPERATOR_KEY: "operator", MANAGER_KEY: "manager"}
        caller = who.get(bearer, "app" if bearer else "nobody")
        sent = json.dumps(body) if isinstance(body, dict) else str(body if body is not None else "no body")
        title = f"{side} {method} {short(path)}, {caller}, {short(self.masked_line(sent))}"
        self.recording.add(title, self.masked("\n".join(lines), text))

    def sections(self):
        """The requests, in their order; a section that fails is recorded as such, and the next one begins."""
        return [
            self.usual_sessions, self.usual_connections, self.usual_tokens, self.usual_pages, self.security_events,
            self.wrong_methods, self.wrong_bodies, self.wrong_bearers, self.codes,
            self.tokens, self.id_tokens, self.deletion, self.switch, self.limits, self.lookups, self.administration,
            self.death, self.size,
        ]

    def run(self, sections):
        for section in sections:
            try:
                section()
            except (AssertionError, OSError, KeyError, ValueError) as error:
                self.recording.add(f"section {section.__name__}", self.masked(f"{type(error).__name__}: {error}"))

    # What an app, a service and an operator usually ask.

    def usual_sessions(self):
        sandbox, public = self.deployment.sandbox, self.request_public
        grant = sandbox.create(email="ada@gmail.com", name="Ada", scope=accounts.WHOLE_SCOPE)[0]
        pair = self.request(200, "", "POST", "/api/auth/mobile/google", {"access_token": grant["access_token"]}).json
        self.request(200, "", "POST", "/api/auth/mobile/google", {"access_token": "unknown"})
        public(200, "GET", "/api/auth/me", bearer=pair["access_token"])
        public(200, "GET", "/api/auth/status", bearer=pair["access_token"])
        public(200, "GET", "/api/auth/status")
        second = self.request(200, "", "POST", "/api/auth/refresh", {"refresh_token": pair["refresh_token"]}).json
        public(200, "POST", "/api/auth/refresh", {"refresh_token": pair["refresh_token"]})
        public(401, "POST", "/api/auth/refresh", {"refresh_token": second["access_token"]})
        public(401, "GET", "/api/auth/me", bearer=second["refresh_token"])
        public(200, "GET", "/v1/user/me", bearer=second["access_token"])
        public(200, "POST", "/api/auth/logout", {"refresh_token": second["refresh_token"]}, second["access_token"])
        public(401, "GET", "/api/auth/me", bearer=second["access_token"])
        public(401, "POST", "/api/auth/refresh", {"refresh_token": second["refresh_token"]})

    def usual_connections(self):
        grant = self.deployment.sandbox.create(email="connected@gmail.com", scope=accounts.WHOLE_SCOPE)[0]
        bearer = user_token("connected")
        body = {"access_token": grant["access_token"], "expires_in": 3600, "scope": grant["scope"].split()}
        for path in ("/v1/auth/gmail-tokens", "/v1/auth/gmail/store-tokens"):
            self.request_public(201, "POST", path, {**body, "refresh_token": grant["refresh_token"]}, bearer)
            self.request_public(201, "POST", path, body, bearer)
            self.request_public(400, "POST", path, {"access_token": "unknown"}, bearer)
        self.request_public(200, "GET", "/v1/user/me", bearer=bearer)
        self.request_public(200, "DELETE", "/v1/auth/gmail-tokens", bearer=bearer)
        self.request_public(200, "DELETE", "/v1/auth/gmail-tokens", bearer=bearer)
        self.request_public(200, "DELETE", "/v1/delete/me", bearer=bearer)
        narrow = self.deployment.sandbox.create(email="narrow@gmail.com", scope="openid")[0]
        body = {"access_token": narrow["access_token"], "refresh_token": narrow["refresh_token"]}
        self.request_public(201, "POST", "/v1/auth/gmail-tokens", body, user_token("narrow"))
        self.request_public(200, "GET", "/v1/user/me", bearer=user_token("narrow"))

    def usual_tokens(self):
        grant = self.connected("ada")
        self.request_token(200, "ada")
        self.request_token(200, "ada", "?min_ttl=60&scope=openid")
        self.request_token(200, "ada", "?min_ttl=99999")
        self.request_token(404, "nobody")
        self.request_renewal(200, "ada", grant["access_token"])
        self.request_renewal(200, "ada", "unknown")
        self.request_renewal(404, "nobody", "unknown")
        self.request_oauth(200, "ada")
        self.request_oauth(400, "nobody")
        self.request_oauth(400, "ada", client_id="limited")
        self.request_oauth(400, "ada", client_id="")
        self.request_oauth(400, "")
        self.deployment.expire("ada")
        self.request_token(200, "ada")

    def usual_pages(self):
        internal = {"listener": self.deployment.internal}
        counted = b"refresh_worker_notices_total"
        accounts.wait_for(lambda: counted in self.deployment.internal.get("/metrics").body, 30, "a notice is counted")
        for path in ("/", "/runbook", "/status", "/metrics", "/healthz", "/readyz", "/.well-known/nothing",
                     "/.well-known/oauth-authorization-server"):
            for headers in ({}, {"Accept": "text/html"}, {"Accept": "application/json"}):
                self.request(200, path, "GET", path, headers=headers, **internal)
        basic = {"Authorization": "Basic am9l"}
        for path in ("/users?user=ada", "/grants", "/grants?state=active", "/users"):
            self.request(401, path, "GET", path, headers=basic, **internal)
            for bearer in (OPERATOR_KEY, MANAGER_KEY, SERVICE_KEY):
                self.request(200, path, "GET", path, bearer=bearer, **internal)

    def security_events(self):
        """One event of each type, one twice, and what is not one."""
        grant = self.connected("watched")
        email, form = "watched@gmail.com", {"Content-Type": "application/secevent+jwt"}
        for event in (
            {"type": "verification", "state": "here"}, {"type": "sessions-revoked", "email": email},
            {"type": "account-disabled", "email": email, "reason": "hijacking"},
            {"type": "account-enabled", "email": email},
            {"type": "account-credential-change-required", "email": email},
            {"type": "token-revoked", "refresh_token": grant["refresh_token"], "form": "hash"},
        ):
            token = self.deployment.sandbox.call("/control/security-events", event)["token"]
            for _ in range(2):
                self.request_public(202, "POST", "/v1/google/security-events", token, headers=form)
        for body in ("", "no.event.this", "x" * 100, "{}"):
            self.request_public(400, "POST", "/v1/google/security-events", body, headers=form)
            self.request_public(400, "POST", "/v1/google/security-events", body)

    def codes(self):
        """Codes for the server: good ones, a spent one, and one of another account."""
        sandbox, bearer = self.deployment.sandbox, user_token("coded")
        own = sandbox.create(email="coded@gmail.com", sub="g-coded")[0]
        of_server = {"client_id": setup.SERVER_CLIENT, "client_secret": setup.SERVER_SECRET}
        grant = sandbox.call("/control/codes", {"email": "coded@gmail.com", "sub": "g-coded", **of_server})
        other = sandbox.call("/control/codes", {"email": "foreign@gmail.com", "sub": "g-foreign", **of_server})
        for code in (grant["code"], grant["code"], "4/0Aunknown", other["code"], other["code"]):
            body = {"access_token": own["access_token"], "server_auth_code": code}
            self.request_public(201, "POST", "/v1/auth/gmail-tokens", body, bearer)

    # What no well-written program asks.

    def wrong_methods(self):
        for listener, routes in ((self.deployment.public, PUBLIC), (self.deployment.internal, INTERNAL)):
            for _, path in routes:
                for method in ("PATCH", "OPTIONS", "HEAD"):
                    self.request(405, path, method, path, listener=listener)
                self.request(404, path, "GET", f"{path}/", listener=listener)

    def wrong_bodies(self):
        public, internal, bearer = self.deployment.public, self.deployment.internal, user_token("wrong")
        for path, members in BODIES.items():
            for body in WRONG_BODIES:
                for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
                    headers = {"Content-Type": kind}
                    self.request(400, path, "POST", path, body, bearer, public, headers=headers)
                self.request(400, path, "POST", path, body, bearer, public)
            for name in members:
                for value in WRONG_VALUES:
                    self.request(400, path, "POST", path, {**members, name: value}, bearer, public)
        for body in WRONG_BODIES:
            headers = {"Content-Type": "application/json"}
            for method, path in (("PUT", "/v1/grants/wrong"), ("POST", "/v1/grants/ada/token/refresh")):
                caller = MANAGER_KEY if method == "PUT" else SERVICE_KEY
                self.request(400, path, method, path, body, caller, internal, headers=headers)
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            self.request(400, "/oauth2/token", "POST", "/oauth2/token", body, None, internal, headers=headers)
        for name in MANAGED:
            for value in WRONG_VALUES:
                self.manage(400, "PUT", "/v1/grants/wrong", {**MANAGED, name: value})
        for name in ("grant_type", "refresh_token", "client_id", "client_secret", "scope"):
            form = {
                "grant_type": "refresh_token", "refresh_token": "ada", "client_id": "mailer",
                "client_secret": SERVICE_KEY,
            }
            form[name] = "wrong"
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            body = urllib.parse.urlencode(form)
            self.request(400, "/oauth2/token", "POST", "/oauth2/token", body, None, internal, headers=headers)
        for query in ("limit=0", "limit=x", "state=x", "reason=x", "after=x", "email=x", "sort=x", "x=1", "limit=1001"):
            self.manage(400, "GET", f"/v1/grants?{query}")
            self.request(400, "/grants", "GET", f"/grants?{query}", bearer=OPERATOR_KEY, listener=internal)
        for query in ("?min_ttl=-1", "?min_ttl=99999999", "?scope=", "?scope=a%20b", "?x=1", "?min_ttl=1&min_ttl=2"):
            self.request_token(400, "ada", query)

    def wrong_bearers(self):
        now = int(time.time())
        bearers = {
            "expired": user_token("a", exp=now - 3600), "of the future": user_token("a", iat=now + 3600),
            "of another audience": user_token("a", aud="other"), "without a user": accounts.token({"exp": now + 60}),
            "without an end": accounts.token({"user_id": "a"}), "of an odd user": user_token("\u0001"),
            "of another secret": accounts.token({"user_id": "a", "exp": now + 60}, secret="another" * 8),
            "unsigned": accounts.token({"user_id": "a", "exp": now + 60}, header={"alg": "none"}),
            "inactive": user_token("inactive"), "text": "text",
        }
        lines = '{"user_id":"inactive","is_active":false}\n'
        self.deployment.fixture.run("users", "import", "-", stdin=lines, expect=None)
        for method, path in PUBLIC[:10]:
            for kind, bearer in bearers.items():
                answer = self.deployment.public.call(method, path, {"access_token": "a"}, bearer)
                self.record("public", method, f"{path} with a token {kind}", None, bearer, answer)
            for value in ("Bearer", "Basic YTpi", "Bearer  two  words", ""):
                headers = {"Authorization": value}
                self.request(401, path, method, path, {"access_token": "a"}, headers=headers)
        for method, path in INTERNAL:
            for bearer in ("unknown", SERVICE_KEY, LIMITED_KEY, OPERATOR_KEY):
                # The page is for everybody, and the worker refreshes grants meanwhile.
                if method != "DELETE" and path != "/":
                    self.request(401, path, method, path, None, bearer, self.deployment.internal)

    # States of the worker.

    def without_keys(self):
        body = {"type": "verification", "state": "here"}
        self.silence(self.deployment.sandbox.call("/control/security-events", body)["token"])

    def blocked_database(self):
        """Another program holds the write lock of the SQLite file."""
        with contextlib.closing(sqlite3.connect(self.deployment.fixture.database, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            requests = [
                (self.request_public, 503, "POST", "/api/auth/refresh", {"refresh_token": "unknown"}),
                (self.request_public, 503, "GET", "/v1/user/me", None, user_token("too-late")),
                (self.request_public, 503, "DELETE", "/v1/user/me", None, user_token("ada")),
                (self.manage, 503, "POST", "/v1/grants/ada/retry"),
                (self.manage, 503, "DELETE", "/v1/grants/ada"),
            ]
            with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
                for job in [pool.submit(send, *words) for send, *words in requests]:
                    job.result()
            database.execute("ROLLBACK")

    def stalled_audit(self):
        """The reader of the metrics log does not read: no token is vended, and no user shown."""
        fixture = self.deployment.fixture
        accounts.wait_for(lambda: "retrying" not in fixture.states(), 60, "the grant of the outage is refreshed")
        deadline = time.monotonic() + 60
        while self.deployment.vend("ada").status == 200 and time.monotonic() < deadline:
            pass
        self.request_token(503, "ada")
        self.request_oauth(503, "ada")
        self.request_user(503, "?user=ada")
        self.request(503, "/grants", "GET", "/grants", bearer=OPERATOR_KEY, listener=self.deployment.internal)
        for method, path in (("GET", "/v1/grants"), ("GET", "/v1/grants/ada"), ("DELETE", "/v1/grants/nobody")):
            self.manage(503, method, path)
        for path in ("/readyz", "/status"):
            self.request(200, path, "GET", path, listener=self.deployment.internal)

    def without_services(self):
        for method, path in INTERNAL:
            self.request(503, path, method, path, None, SERVICE_KEY, self.deployment.internal)


def short(text):
    """A text of at most 120 characters, in one line."""
    text = text.encode(errors="backslashreplace").decode().replace("\n", "\\n").replace("\0", "\\0")
    return text if len(text) <= 120 else f"{text[:100]}… ({len(text)} characters)"


def parts_of_page(page):
    """Each different line of a page once, without its figures: lists are in the order of random ids.

    The last failures at Google are left out, because the worker refreshes grants meanwhile.
    """
    page = re.sub(r"none known|<time>TIME</time>( <small>\(NOW\)</small>)?", "TIME", page)
    page = re.sub(r"No notice waits for delivery|The notices of \d+ users? wait[^<]*TIME", "NOTICES", page)
    page = page.replace("due NOW, the oldest since TIME", "due NOW")
    page = re.sub(r"\d+([.,]\d+)*", "N", page.replace("><", ">\n<"))
    lines = {line for line in page.splitlines() if "Last failure" not in line and "HTTP N" not in line}
    return "\n".join(sorted(lines))


def names_of_metrics(text):
    """The help and the type of each metric, and the labels of its samples, without their values."""
    samples = {re.sub(r'"[^"]*"', '"…"', line.rpartition(" ")[0]) for line in text.splitlines() if line[:1] != "#"}
    comments = [line for line in text.splitlines() if line.startswith("#")]
    return "\n".join([*comments, *sorted(samples)])


def record(fixture, recording, masked):
    deployment = accounts.Accounts(fixture, *rare_answers.login(fixture), services=rare_answers.services(), start=False)
    fixture.sandbox.settings(clients=[CLIENT, setup.SERVER_CLIENT], lifetime=3600)
    # Without these the worker would end such grants at once, or soon.
    for number, token in enumerate(("1//unknown", "1//one-that-google-does-not-know")):
        fixture.sandbox.create(email=f"kept-{number}@gmail.com", refresh_token=token, scope="openid")
    secrets = deployment.write("client-secrets", f"{setup.SERVER_CLIENT} {setup.SERVER_SECRET}")
    usual = [
        "--accept-former-refresh-tokens-until", "9999-12-31", "--server-client-id", setup.SERVER_CLIENT,
        "--client-secret-file", secrets,
    ]
    routes = Routes(deployment, recording, masked)
    deployment.start(*usual)
    routes.run(routes.sections())
    routes.run([routes.blocked_database])
    deployment.worker.stop(expect=0)
    deployment.start("--google-calls-per-minute", "1")
    routes.run([routes.without_keys, routes.flood])
    deployment.worker.stop()
    reader = Reader(fixture.folder / f"metrics-{Worker.count + 1}.jsonl")
    deployment.worker = fixture.start(*deployment.extra)
    accounts.wait_for(deployment.is_ready, 60, "the listeners answer")
    routes.run([routes.stalled_audit])
    deployment.worker.kill()
    reader.close()
    record_closed(fixture, deployment, routes)
    record_worker(fixture, deployment, recording, masked)
    deployment.backend.shutdown()


def record_closed(fixture, deployment, routes):
    """A listener over TLS that shows no metrics, and has no services."""
    authority = Authority(fixture.folder)
    certificate, key = authority.issue("worker")
    port = accounts.free_port()
    removed = deployment.extra.index("--services-file")
    extra = [*deployment.extra[:removed], *deployment.extra[removed + 2 :]]
    extra += ["--listen-internal", f"127.0.0.1:{port}", "--internal-certificate", certificate, "--internal-key", key]
    deployment.internal = TLSListener(port, authority)
    deployment.worker = fixture.start(*extra).wait_started()
    accounts.wait_for(lambda: deployment.internal.get("/healthz").status, 60, "the listener answers")
    routes.run([routes.without_services])
    deployment.worker.stop()


def record_worker(fixture, deployment, recording, masked):
    """What the daemons wrote while they answered: events, messages and notices."""
    events = [event for worker in fixture.workers for event in events_of(worker)]
    record_events("daemons", events, recording)
    messages = {masked(line) for worker in fixture.workers for line in worker.errors.read_text().splitlines()}
    recording.add("messages of the daemons", "\n".join(sorted(messages)))
    notices = {}
    for headers, body in deployment.backend.requests:
        notice = json.loads(body)
        names = "".join(f"{name}: {value}\n" for name, value in sorted(headers.items()) if name != "Content-Length")
        notices[(notice["type"], notice["data"].get("user_id", ""))] = masked(names, as_lines(body))
    for (kind, user), text in sorted(notices.items()):
        recording.add(masked(f"notice {kind} about {user}"), text)


def events_of(worker):
    try:
        return worker.events() if worker.metrics.is_file() else []
    except ValueError:
        return []
