"""Copies of two former backends, which keep no sessions: PayPulse's functions and ComprehensionEngine's server.

They hold the data that the move to the worker reads: PayPulse's table of DynamoDB and its secrets, served as AWS does,
and ComprehensionEngine's table of PostgreSQL. Sessions are signed tokens, which they verify and make without storing
anything.
"""

import base64
import contextlib
import datetime
import hashlib
import hmac
import http.server
import json
import threading
import time
import urllib.parse
import uuid

from accounts import token
from browser_page import cookies_of, permissions, set_cookies

PAYPULSE_SECRET = "the secret of PayPulse's login, which is long enough"
ENGINE_SECRET = "the SECRET_KEY of ComprehensionEngine, long enough"
CLIENT_SECRET_NAME = "Google-OAuth-Client-ID"


def now_text(zone=""):
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + zone


def claims_of(text, secret):
    """The claims of a valid token; `None` for one that is malformed, forged or expired."""
    try:
        signed, mac = text.rsplit(".", 1)
        expected = base64.urlsafe_b64encode(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())
        body = signed.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, IndexError):
        return None
    is_signed = hmac.compare_digest(expected.rstrip(b"=").decode(), mac)
    return claims if is_signed and claims.get("exp", 0) > time.time() else None


class PayPulse:
    """The table `Users`, the secrets, and the functions that read them."""

    def __init__(self, client):
        self.rows = {}
        self.secrets = {CLIENT_SECRET_NAME: client}

    def sign_up(self, number):
        moment = datetime.datetime(2025, 6, 1, 12, 34, 56, 123456) + datetime.timedelta(hours=number)
        user = f"user_{uuid.uuid4()}"
        self.rows[user] = {
            "UserID": user, "Email": f"payer{number}@example.com", "Name": f"Payer {number}",
            "CreatedOn": str(moment.date()), "CreatedAt": str(moment.time()), "Password": "$2b$12$not-to-be-copied",
        }
        return user

    def connect(self, user, grant, **changes):
        self.secrets[f"gmail/user/{user}"] = json.dumps({
            "access_token": grant["access_token"], "refresh_token": grant["refresh_token"], "expires_in": 3600,
            "expires_at": datetime.datetime.fromtimestamp(grant["expires_at"], datetime.UTC)
            .strftime("%Y-%m-%dT%H:%M:%S.%f"),
            "scope": grant["scope"], "token_type": "Bearer", "created_at": now_text(),
            "google_user_id": "", "google_email": grant["email"], "google_name": "Google's name",
            "google_verified_email": False, **changes,
        })

    def delete(self, user):
        del self.rows[user]
        self.secrets.pop(f"gmail/user/{user}", None)

    def login(self, user):
        now = int(time.time())
        email = self.rows[user]["Email"]
        return token({"user_id": user, "email": email, "iat": now, "exp": now + 86_400}, PAYPULSE_SECRET)

    def answer(self, method, path, bearer):
        claims = claims_of(bearer, PAYPULSE_SECRET)
        row = self.rows.get((claims or {}).get("user_id"))
        if not row:
            return 401, {"error": {"code": "INVALID_TOKEN", "message": "Malformed Token"}}
        if path == "/v1/invoices":
            return 200, {"message": "Invoices", "data": []}
        if (method, path) != ("GET", "/v1/user/me"):
            return 404, {"message": "Not Found"}
        return 200, {"message": "User profile retrieved successfully", "data": {
            "name": row["Name"], "email": row["Email"], "created_on": row["CreatedOn"],
            "gmail_account_connected": f"gmail/user/{row['UserID']}" in self.secrets,
        }}

    # The routes of AWS.

    def scan(self, names):
        """The rows with the requested fields; each value is in an object that names its type."""
        rows = list(self.rows.values())
        return [{name: {"S": row[name]} for name in names} for row in rows]

    def secrets_manager(self, operation, fields):
        if operation == "ListSecrets":
            prefix = fields["Filters"][0]["Values"][0]
            return 200, {"SecretList": [{"Name": name} for name in sorted(self.secrets) if name.startswith(prefix)]}
        if operation == "BatchGetSecretValue":
            answers = [self.secrets_manager("GetSecretValue", {"SecretId": name}) for name in fields["SecretIdList"]]
            return 200, {"SecretValues": [answer for status, answer in answers if status == 200], "Errors": []}
        name = fields["SecretId"]
        if operation == "GetSecretValue" and name in self.secrets:
            return 200, {"Name": name, "SecretString": self.secrets[name], "CreatedDate": time.time()}
        if operation == "PutSecretValue":
            self.secrets[name] = fields["SecretString"]
            return 200, {"Name": name}
        return 400, {"__type": "ResourceNotFoundException"}


class Engine:
    """The table `users`, and the routes of the app."""

    ACCESS_SECONDS = (20, 60)

    def __init__(self, server):
        self.server = server
        server.execute("""
            CREATE TABLE users (
                id uuid PRIMARY KEY, email varchar(255) NOT NULL UNIQUE, name varchar(255) NOT NULL,
                google_id varchar(255) UNIQUE, avatar_url text, created_at timestamptz DEFAULT now(),
                last_login timestamptz, is_active boolean NOT NULL
            )
        """)
        self.rows = {}
        self.issued = 0

    def sign_up(self, *numbers):
        values = []
        for number in numbers:
            user = str(uuid.uuid4())
            self.rows[user] = {
                "id": user, "email": f"reader{number}@gmail.com", "name": f"Reader \"{number}\"",
                "avatar_url": f"https://lh3.example/{number}", "created_at": f"2025-08-25T10:{number % 60:02}:00",
                "last_login": None, "is_active": True, "google_id": f"1{number:08}",
            }
            row = self.rows[user]
            values.append(
                f"('{user}', '{row['email']}', '{row['name']}', '{row['google_id']}', '{row['avatar_url']}', "
                f"'{row['created_at']}.123456+00', true)"
            )
        self.server.execute(
            "INSERT INTO public.users (id, email, name, google_id, avatar_url, created_at, is_active) VALUES "
            + ", ".join(values)
        )
        return list(self.rows)[-len(numbers):]

    def pair(self, user, access_seconds=None):
        self.issued += 1
        low, high = self.ACCESS_SECONDS
        span = access_seconds if access_seconds is not None else low + self.issued % (high - low)
        claims = {"sub": user, "email": self.rows[user]["email"]}
        now = int(time.time())
        return {
            "access_token": token({**claims, "exp": now + span, "type": "access"}, ENGINE_SECRET),
            "refresh_token": token({**claims, "exp": now + 7 * 86_400, "type": "refresh"}, ENGINE_SECRET),
            "token_type": "bearer", "expires_in": 1800,
        }

    def answer(self, method, path, bearer, body):
        if (method, path) == ("POST", "/api/auth/refresh"):
            claims = claims_of(json.loads(body).get("refresh_token", ""), ENGINE_SECRET)
            if not claims or claims.get("type") != "refresh" or claims["sub"] not in self.rows:
                return 401, {"detail": "Invalid refresh token"}
            return 200, self.pair(claims["sub"])
        claims = claims_of(bearer, ENGINE_SECRET)
        row = self.rows.get((claims or {}).get("sub"))
        if claims and not row:
            # The change that docs/moving.md asks for.
            row = next((row for row in self.rows.values() if row["email"] == claims.get("email")), None)
        if not row or claims.get("type") != "access":
            return 401, {"detail": "Could not validate credentials"}
        return 200, row if path == "/api/auth/me" else {"conversations": []}


    def answer_page(self, method, url, cookies):
        """As `answer`, for the web front end, whose tokens are in cookies; also returns the headers that set them."""
        if url.path == "/api/auth/callback":
            pair = self.pair(url.query.removeprefix("user="))
            return 200, {}, set_cookies([pair["access_token"], pair["refresh_token"]])
        if (method, url.path) == ("POST", "/api/auth/logout"):
            return 200, {"message": "Successfully logged out"}, set_cookies(None)
        body = json.dumps({"refresh_token": cookies.get("ce_refresh_token", "")})
        status, answer = self.answer(method, url.path, cookies.get("ce_access_token", ""), body)
        if (status, url.path) == (200, "/api/auth/refresh"):
            return 200, {}, set_cookies([answer["access_token"], answer["refresh_token"]])
        return status, answer, []


class Former(http.server.ThreadingHTTPServer):
    """Both backends and AWS on one port."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, paypulse, engine):
        super().__init__(("127.0.0.1", 0), FormerRequest)
        self.paypulse = paypulse
        self.engine = engine
        self.counts = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


class FormerRequest(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        bearer = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        url = urllib.parse.urlsplit(self.path)
        headers = permissions(self.headers)
        is_page = self.headers["Origin"] or self.headers["Cookie"] or url.path == "/api/auth/callback"
        if not is_page:
            self.server.counts[url.path] = self.server.counts.get(url.path, 0) + 1
        target = self.headers["X-Amz-Target"]
        if target:
            status, answer = self.server.paypulse.secrets_manager(target.split(".")[1], json.loads(body))
        elif url.path == "/scan":
            status, answer = 200, self.server.paypulse.scan(urllib.parse.parse_qs(url.query)["name"])
        elif is_page and self.command == "OPTIONS":
            status, answer = 200, {}
        elif is_page:
            status, answer, cookies = self.server.engine.answer_page(self.command, url, cookies_of(self.headers))
            headers += cookies
        elif url.path.startswith("/v1/"):
            status, answer = self.server.paypulse.answer(self.command, url.path, bearer)
        else:
            status, answer = self.server.engine.answer(self.command, url.path, bearer, body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(text)

    do_GET = do_POST = do_DELETE = do_OPTIONS = answer

    def log_message(self, *arguments):
        pass
