"""What the baseline scan of ZAP reports about responses, as plain checks (https://www.zaproxy.org/docs/alerts/).

The numbers are those of ZAP's alerts. Checks of HTML are left out, because the public routes send none.
"""

import http.client
import re

from harness import ROOT

# The probes that a load balancer sends directly to the worker.
PROBES = {"GET /healthz", "GET /readyz"}
VERSION = re.compile(r"/\d|\d\.\d")
# 10023, 90022: paths and words of traces and of databases.
TRACE = re.compile(rb"\.swift|Fatal error|stack trace|Traceback|SQLITE_|libpq|/usr/|/home/|\b0x[0-9a-f]{6,}", re.I)
SECRET = "scan-6f1d2c-credential"


def public_operations():
    """The methods and paths that docs/openapi.yaml gives the public listener, with an id, and without the probes."""
    operations, path, method = set(), None, None
    for line in (ROOT / "docs" / "openapi.yaml").read_text().splitlines():
        if match := re.match(r"  (/\S*):$", line):
            path = match[1]
        elif match := re.match(r"    (get|post|put|patch|delete):$", line):
            method = match[1].upper()
        elif re.match(r"      tags: \[.*\bpublic\b.*\]$", line):
            operations.add(f"{method} {path}")
    assert len(operations) > 10, "docs/openapi.yaml describes the worker's routes"
    return {operation.replace("{id}", "work") for operation in operations} - PROBES


def check_response(answer, name, tls=False):
    """Checks a response that the worker itself made."""
    headers = answer.headers
    assert headers.get("x-content-type-options") == "nosniff", f"10021: {name} forbids to guess its type"
    assert "no-store" in headers.get("cache-control", ""), f"10015: no cache keeps {name}"
    assert not answer.body or "content-type" in headers, f"10019: {name} names the type of its body"
    assert "text/html" not in headers.get("content-type", ""), f"{name} is no page"
    check_server(answer, name, tls)


def check_server(answer, name, tls=False):
    """Checks any response, also one of a proxy."""
    headers = answer.headers
    assert not VERSION.search(headers.get("server", "")), f"10036: {name} hides the server's version"
    for header in ("x-powered-by", "x-aspnet-version", "x-debug-token", "x-backend-server"):
        assert header not in headers, f"10037: {name} does not say what made it"
    assert headers.get("access-control-allow-origin") != "*", f"10098: {name} is not for every origin"
    for cookie in headers.get("set-cookie", "").splitlines():
        flags = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "secure"} <= flags, f"10010, 10011: the cookie of {name} is for HTTPS and no script"
        assert any(flag.startswith("samesite=") for flag in flags), f"10054: the cookie of {name} stays on its site"
    assert not TRACE.search(answer.body), f"10023, 90022: {name} shows nothing from inside the server"
    assert SECRET.encode() not in answer.body, f"{name} does not repeat a credential"
    if tls:
        wanted = headers.get("strict-transport-security", "")
        assert wanted.startswith("max-age=") and "\n" not in wanted, f"10035: {name} asks once for HTTPS alone"


def check_refused_methods(listener, path, tls=False):
    """No method repeats a request to whoever sent it."""
    for method in ("TRACE", "TRACK"):
        try:
            answer = listener.call(method, path, headers={"Authorization": f"Bearer {SECRET}"})
        except (http.client.HTTPException, ConnectionError):
            continue
        assert answer.status in (400, 404, 405, 501), f"{method} {path} is refused"
        check_server(answer, f"{method} {path}", tls)
