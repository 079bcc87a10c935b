"""One base URL: nginx sends the worker's routes to the worker and everything else to the former backend."""

import http.client
import http.server
import json
import ssl
import threading
import time

from accounts import Accounts, token, user_token
from browser_page import COOKIES, ORIGIN, Page, permissions, set_cookies
from nginx import Nginx
from scan import check_refused_methods, check_server, public_operations
from tls import Authority, TLSListener


class Former(http.server.ThreadingHTTPServer):
    """The former backend: it returns the request that it got, over TLS."""

    daemon_threads = True

    def __init__(self, certificate, key):
        super().__init__(("127.0.0.1", 0), FormerRequest)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.server_address[1]}"


class FormerRequest(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = json.dumps({"former": True, "path": self.path, "headers": dict(self.headers)}).encode()
        self.send_response(299)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Strict-Transport-Security", "max-age=1")
        self.send_header("X-Powered-By", "Former/1.0")
        headers = permissions(self.headers)
        if self.path == "/api/auth/callback":
            headers += set_cookies(["access", "refresh"])
        elif self.path == "/api/auth/logout":
            headers += set_cookies(None)
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def log_message(self, *arguments):
        pass


class Phone(TLSListener):
    """A phone with its own address, which can claim another one."""

    def __init__(self, port, authority, address):
        super().__init__(port, authority)
        self.source = (address, 0)

    def connection(self):
        return http.client.HTTPSConnection(
            "localhost", self.address, timeout=60, context=self.context, source_address=self.source
        )


def scenario(fixture):
    authority = Authority(fixture.folder)
    certificate, key = authority.issue("nginx")
    former_certificate = authority.issue("former-backend.example.com", host="former-backend.example.com")
    former = Former(*former_certificate)
    accounts = Accounts(
        fixture, "--trusted-proxy", "127.0.0.1", "--google-calls-per-minute", "60",
        "--accept-former-refresh-tokens-until", "9999-12-31",
    )
    nginx = Nginx.deployed(
        fixture, "refresh-worker-app.conf",
        {
            "listen 443 ssl;": "listen 127.0.0.1:{port} ssl;",
            "    listen [::]:443 ssl;\n": "",
            "/etc/letsencrypt/live/api.example.com/fullchain.pem": certificate,
            "/etc/letsencrypt/live/api.example.com/privkey.pem": key,
            "https://former-backend.example.com": former.url,
            "http://127.0.0.1:8080": f"http://127.0.0.1:{accounts.port}",
            "/etc/ssl/certs/ca-certificates.crt": authority.file,
        },
    )
    try:
        routes(authority, nginx)
        scanned(authority, nginx)
        browsers(authority, nginx)
        user_flows(fixture, accounts, authority, nginx)
        budgets(authority, nginx)
        late_sign_ups(accounts, authority, nginx)
    finally:
        nginx.stop()
        former.shutdown()
    return ""


def came_from_former(answer):
    return answer.status == 299


def routes(authority, nginx):
    """Each route that openapi.yaml describes reaches the worker, and nothing else does."""
    phone = Phone(nginx.port, authority, "127.0.0.1")
    operations = public_operations()
    paths = {operation.split()[1] for operation in operations}
    # The pattern of ids in the proxy matches it too.
    operations |= {f"{method} /v1/connections/google" for method in ("GET", "DELETE")}
    operations |= {f"HEAD {operation.split()[1]}" for operation in operations if operation.startswith("GET ")}
    for path in sorted(paths):
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = phone.call(method, path, headers={"X-Forwarded-For": "6.6.6.6"})
            is_workers = f"{method} {path}" in operations
            assert came_from_former(answer) != is_workers, f"{method} {path} reaches the right backend"
            assert ("request-id" in answer.headers) == is_workers, (
                f"{method} {path} has the worker's request id only if the worker serves it"
            )
    for path in (
        "/",
        "/v1/payments?a=%2Fb&c=d%20e",
        "/v1/user/me/",
        "/v1/user/me/photo",
        "/v1/user",
        "/v1/connections/a/b",
        "/v1/connections/" + "a" * 33,
        "/healthz",
        "/a%2Fb//c/../d",
    ):
        answer = phone.call("POST", path, body={"n": 1}, headers={"X-Forwarded-For": "6.6.6.6"})
        assert came_from_former(answer), f"{path} reaches the former backend"
        seen = answer.json
        assert seen["path"] == path, "the path reaches the former backend unchanged"
        assert seen["headers"]["Host"] == "former-backend.example.com", "the former backend sees its own name"
        assert seen["headers"]["X-Forwarded-For"] == "127.0.0.1", "the former backend sees the client's address"


def scanned(authority, nginx):
    """nginx asks for HTTPS alone, hides versions and refuses to repeat requests, whoever made the response."""
    phone = Phone(nginx.port, authority, "127.0.0.5")
    for method, path, status in (
        ("GET", "/v1/user/me", 401),
        ("GET", "/other", 299),
        ("GET", "/%ff%00", 400),
        ("POST", "/v1/auth/gmail-tokens", 413),
    ):
        body = "x" * 2_000_000 if status == 413 else None
        check_server(phone.call(method, path, body).expect(status), f"{method} {path}", tls=True)
    for path in ("/v1/user/me", "/other"):
        check_refused_methods(phone, path, tls=True)


def browsers(authority, nginx):
    """Requests of browsers reach the former backend, which alone reads its cookies and permits their origin."""
    client = Phone(nginx.port, authority, "127.0.0.4")
    for operation in public_operations():
        method, path = operation.split()
        for headers in ({"Origin": ORIGIN}, *({"Cookie": f"a=b; {name}=c"} for name in COOKIES)):
            answer = client.call(method, path, headers=headers)
            assert came_from_former(answer), f"{operation} with {headers} reaches the former backend"
            answer = client.call(method, path, bearer="x", headers=headers)
            assert not came_from_former(answer), f"{operation} with {headers} and a token reaches the worker"
        answer = client.call(method, path, headers={"Cookie": "theme=dark"})
        assert not came_from_former(answer), f"{operation} with another cookie reaches the worker"
    page = Page(client)
    page.visit("/api/auth/callback")
    assert set(page.cookies) == set(COOKIES), "the sign-in sets both cookies"
    answer = page.fetch("GET", "/api/auth/me")
    assert answer.json["headers"]["Cookie"] == "ce_access_token=access; ce_refresh_token=refresh", (
        "the former backend gets both cookies"
    )
    page.fetch("POST", "/api/auth/logout")
    assert not page.cookies, "the log-out deletes the cookies"


def user_flows(fixture, accounts, authority, nginx):
    """Both apps work through nginx as they do without it."""
    accounts.public = Phone(nginx.port, authority, "127.0.0.9")
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    bearer = user_token("ada")
    accounts.connect(grant, bearer).expect(201)
    assert accounts.is_connected(bearer), "the profile says connected"
    other = fixture.sandbox.create(email="eva@gmail.com")[0]
    tokens = accounts.sign_in(other)
    tokens = accounts.public.post("/api/auth/refresh", {"refresh_token": tokens["refresh_token"]}).expect(200).json
    accounts.public.get("/api/auth/me", tokens["access_token"]).expect(200)
    accounts.public.post("/api/auth/logout", {"refresh_token": tokens["refresh_token"]}).expect(200)
    accounts.public.call("DELETE", "/v1/delete/me", bearer=bearer).expect(200)
    body = {"access_token": "a" * 70_000}
    answer = accounts.public.post("/v1/auth/gmail-tokens", body, bearer).expect(413)
    assert "error" in answer.json, "a large body is refused in the app's format"


def budgets(authority, nginx):
    """Each phone spends its own budget, and a claimed address changes nothing."""

    def connect(phone, claimed=None):
        headers = {"X-Forwarded-For": claimed} if claimed else {}
        body = {"access_token": "unheard"}
        return phone.post("/v1/auth/gmail-tokens", body, user_token("spender"), headers=headers).status

    spender = Phone(nginx.port, authority, "127.0.0.2")
    statuses = [connect(spender)]
    while statuses[-1] != 429 and len(statuses) < 2000:
        statuses.append(connect(spender, claimed=f"10.0.{len(statuses) // 256}.{len(statuses) % 256}"))
    assert statuses[-1] == 429, "claimed addresses do not extend the budget"
    assert connect(spender, claimed="127.0.0.3") == 429, "a claimed address has no budget of its own"
    assert connect(Phone(nginx.port, authority, "127.0.0.3")) != 429, "each phone has its own budget"


class Overloaded(http.server.BaseHTTPRequestHandler):
    """A worker that serves nobody now."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_error(503)

    def log_message(self, *arguments):
        pass


def late_sign_ups(accounts, authority, nginx):
    """The former backend refreshes the tokens of a user whom no import has brought yet, and no others."""
    phone = Phone(nginx.port, authority, "127.0.0.8")

    def refresh(user):
        claims = {"sub": user, "type": "refresh", "exp": int(time.time()) + 86_400}
        return phone.post("/api/auth/refresh", {"refresh_token": token(claims)})

    answer = refresh("late")
    assert came_from_former(answer), "the former backend refreshes the tokens of a user who is not moved yet"
    seen = answer.json["headers"]
    assert answer.json["path"] == "/api/auth/refresh" and int(seen["Content-Length"]) > 0, "it gets the same request"
    assert seen["Host"] == "former-backend.example.com", "it sees its own name"
    assert seen["X-Forwarded-For"] == "127.0.0.8", "it sees the client's address"
    moved = json.dumps({"user_id": "moved", "email": "moved@example.com"})
    accounts.fixture.run("users", "import", "-", stdin=moved)
    assert "access_token" in refresh("moved").expect(200).json, "the worker refreshes the tokens of a user who is moved"
    accounts.close()
    overloaded = http.server.ThreadingHTTPServer(("127.0.0.1", accounts.port), Overloaded)
    threading.Thread(target=overloaded.serve_forever, daemon=True).start()
    answer = refresh("late").expect(503)
    assert answer.headers["retry-after"] == "60" and "detail" in answer.json, "any other 503 stays the worker's"
    check_server(answer, "a 503 of the worker", tls=True)
    overloaded.shutdown()
