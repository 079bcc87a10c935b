"""A page of a backend's web front end, as a browser runs it: with cookies, and by the rules of CORS.

Both sides are here: the page, and the headers that the former backend sends to it.
"""

import http.cookies

ORIGIN = "https://app.example.com"
COOKIES = ["ce_access_token", "ce_refresh_token"]


class Page:
    """A page of another origin than the backend; `client` sends its requests."""

    def __init__(self, client):
        self.client = client
        self.cookies = {}

    def visit(self, path):
        """Opens an address of the backend, as at the end of a sign-in: with cookies, and without `Origin`."""
        return self.send("GET", path, {})

    def fetch(self, method, path):
        """What `fetch` does with `credentials: "include"` and JSON: the browser asks first if it is permitted."""
        asked = {
            "Origin": ORIGIN, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": "content-type",
        }
        permitted = readable(self.client.call("OPTIONS", path, headers=asked))
        assert permitted.status < 300, f"{path}: the preflight succeeds"
        assert method in permitted.headers["access-control-allow-methods"], f"{path}: the method is permitted"
        assert "content-type" in permitted.headers["access-control-allow-headers"], f"{path}: the header is permitted"
        return readable(self.send(method, path, {"Origin": ORIGIN, "Content-Type": "application/json"}))

    def send(self, method, path, headers):
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self.client.call(method, path, headers=headers)
        for line in answer.headers.get("set-cookie", "").splitlines():
            for name, cookie in http.cookies.SimpleCookie(line).items():
                if cookie["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = cookie.value
        return answer


def readable(answer):
    """Checks that the browser lets the page read the answer."""
    assert answer.headers.get("access-control-allow-origin") == ORIGIN, "the answer names the page's origin"
    assert answer.headers.get("access-control-allow-credentials") == "true", "the answer permits cookies"
    return answer


def permissions(request_headers):
    """The headers that permit the web front end to call."""
    if request_headers["Origin"] != ORIGIN:
        return []
    return [
        ("Access-Control-Allow-Origin", ORIGIN), ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Allow-Methods", "GET, POST"), ("Access-Control-Allow-Headers", "authorization, content-type"),
    ]


def cookies_of(request_headers):
    cookies = http.cookies.SimpleCookie(request_headers["Cookie"])
    return {name: cookie.value for name, cookie in cookies.items()}


def set_cookies(values):
    """The headers that set both cookies, or delete them if there are no values."""
    age = 7 * 86_400 if values else 0
    return [
        ("Set-Cookie", f"{name}={value}; Max-Age={age}; Path=/; Secure; HttpOnly; SameSite=None")
        for name, value in zip(COOKIES, values or ["", ""], strict=True)
    ]
