"""Traces of callers: the worker's spans of vends and refreshes come to a collector below the callers' own, the logs
have the trace's id, the notice of a change has the header of the request that made it, and Google gets no header of
it."""

import base64
import http.server
import json
import threading
import urllib.error
import urllib.request

from accounts import SERVICE_KEY, Accounts, user_token
from collector import Collector, attributes
from expectations import wait_for

ENVIRONMENT = {"OTEL_METRICS_EXPORTER": "none", "OTEL_SERVICE_NAME": "tokens"}
SPAN = "00f067aa0ba902b7"


def scenario(fixture):
    collector = Collector()
    google = Recorder(fixture.sandbox.url)
    accounts = Accounts(
        fixture, "--otlp-endpoint", collector.url, "--log-level", "debug", "--token-endpoint", google.url + "/token",
        start=False,
    )
    imported = fixture.sandbox.create(1)
    fixture.import_grants(imported)
    user = imported[0]["email"]
    worker = accounts.start(environment=ENVIRONMENT)

    served, refreshed, unsampled, failed = "a" * 32, "b" * 32, "c" * 32, "d" * 32
    vend(accounts, user, f"00-{served}-{SPAN}-01").expect(200)
    accounts.expire(user)
    vend(accounts, user, f"00-{refreshed}-{SPAN}-01").expect(200)
    vend(accounts, user, f"00-{unsampled}-{SPAN}-00").expect(200)
    vend(accounts, "nobody", f"00-{failed}-{SPAN}-01").expect(404)
    for invalid in [f"00-{served.upper()}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", "nonsense", f"ff-{served}-{SPAN}-01"]:
        vend(accounts, user, invalid).expect(200)

    wait_for(lambda: len(collector.bodies("/v1/traces")) > 0, 30, "spans are sent")
    wait_for(lambda: len(collector.spans()) >= 4, 30, "all spans are sent")
    spans = collector.spans()
    assert len(spans) == 4, f"there is a span for each recorded vend and for the refresh: {spans}"
    by_trace = {}
    for span in spans:
        by_trace.setdefault(hexadecimal(span["traceId"]), []).append(span)
    assert set(by_trace) == {served, refreshed, failed}, "only traces that callers record have spans"

    parent = only(by_trace[served])
    assert hexadecimal(parent["parentSpanId"]) == SPAN, "it is below the caller's span"
    assert parent["kind"] == "SPAN_KIND_SERVER", "a vend answers a request"
    assert attributes(parent)["refresh_worker.outcome"] == "served", "it has the outcome"
    assert attributes(parent)["refresh_worker.service"] == "mailer", "it has the service"
    vended = only(span for span in by_trace[refreshed] if span["name"] == "vend")
    refresh = only(span for span in by_trace[refreshed] if span["name"] == "refresh")
    assert refresh["parentSpanId"] == vended["spanId"], "the refresh is below the vend that waited"
    assert refresh["kind"] == "SPAN_KIND_CLIENT", "a refresh makes a request"
    assert int(vended["startTimeUnixNano"]) <= int(refresh["startTimeUnixNano"]), "it begins within the vend"
    # The wall clock gives the start and another clock the duration, each in whole milliseconds.
    millisecond = 1_000_000
    assert int(refresh["endTimeUnixNano"]) <= int(vended["endTimeUnixNano"]) + millisecond, "it ends within the vend"
    assert only(by_trace[failed])["status"]["code"] == "STATUS_CODE_ERROR", "a refused vend has failed"
    assert collector.resource("/v1/traces")["service.name"] == "tokens", "they are this service's"
    sent = b"".join(body for _, _, body in collector.requests).decode()
    assert user not in sent, "no user is named"

    for trace in [served, refreshed, unsampled]:
        assert len(worker.events("vend", trace_id=trace)) == 1, "the line of the vend has the trace"
    assert sum("trace_id" not in event for event in worker.events("vend")) == 4, "an invalid header is ignored"
    assert not any("trace_id" in event for event in worker.events("refresh")), "a refresh is for everybody"

    # A request of the app.
    connected = "e" * 32
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    body = {"access_token": grant["access_token"], "expires_in": 3600, "scope": grant["scope"].split(),
            "refresh_token": grant["refresh_token"]}
    headers = {"traceparent": f"00-{connected}-{SPAN}-01"}
    accounts.public.call("POST", "/v1/connections/google", body, user_token("ada"), headers).expect(201)
    lines = [line for line in worker.errors.read_text().splitlines() if f"trace_id={connected}" in line]
    assert any("request=" in line and "grant=" in line for line in lines), f"the line of the change has it: {lines}"
    wait_for(
        lambda: any(
            " request " in line and f"trace_id={connected}" in line for line in worker.errors.read_text().splitlines()
        ),
        10, "the line of the request has it",
    )

    check_notices(fixture, accounts, worker, imported[0])

    assert google.requests, "the refresh went through the recorder"
    names = {name.lower() for _, headers, _ in google.requests for name in headers}
    assert not names & {"traceparent", "tracestate", "baggage"}, "Google gets nothing of the trace"
    accounts.close()
    collector.close()
    return f"{len(spans)} spans"


def check_notices(fixture, accounts, worker, imported):
    """The notice of a change has the trace of the request that made it, if the request sent one."""
    backend, app = accounts.backend, user_token("ada")
    disconnected, deleted = f"00-{'1' * 32}-{SPAN}-01", f"00-{'2' * 32}-{SPAN}-00"
    default = "/v1/connections/default"
    accounts.public.call("DELETE", default, bearer=app, headers={"traceparent": disconnected}).expect(200)
    accounts.public.call("DELETE", "/v1/user/me", bearer=app, headers={"traceparent": deleted}).expect(200)
    backend.wait_for("ada", 2)
    expected = [("grant.disconnected", disconnected), ("user.deleted", deleted)]
    assert traces(backend, "ada") == expected, "each notice has the header of its request"
    wait_for(lambda: worker.events("notice", trace_id="1" * 32), 10, "the line of the delivery has the trace")

    fixture.run("notices", "replay", "--user", "ada")
    backend.wait_for("ada", 4)
    assert traces(backend, "ada") == expected * 2, "a replay posts the same headers"

    grant = fixture.sandbox.create(email="bob@gmail.com")[0]
    accounts.connect(grant, user_token("bob")).expect(201)
    accounts.disconnect(user_token("bob"))
    backend.wait_for("bob", 1)
    assert traces(backend, "bob") == [("grant.disconnected", None)], "a request without a header passes none on"

    # One transaction stores the results of many refreshes.
    fixture.sandbox.change(imported, revoked=True)
    accounts.expire(imported["email"])
    vend(accounts, imported["email"], f"00-{'3' * 32}-{SPAN}-01")
    backend.wait_for(imported["email"], 1)
    ended = [("grant.disconnected", None)]
    assert traces(backend, imported["email"]) == ended, "a refresh has no trace, although a vend waited for it"


def traces(backend, user):
    """The type and the header `traceparent` of each notice about a user."""
    posted = [(headers, json.loads(body)) for headers, body in backend.requests]
    return [(notice["type"], headers.get("traceparent")) for headers, notice in posted
            if notice["data"].get("user_id") == user]


def vend(accounts, user, traceparent):
    path = f"/v1/grants/{user}/token?min_ttl=60"
    return accounts.internal.call("GET", path, bearer=SERVICE_KEY, headers={"traceparent": traceparent})


def hexadecimal(encoded):
    return base64.b64decode(encoded).hex()


def only(values):
    values = list(values)
    assert len(values) == 1, f"there is one: {values}"
    return values[0]


class Recorder(http.server.ThreadingHTTPServer):
    """Passes requests on to the fake Google server, and keeps their headers."""

    daemon_threads = True

    def __init__(self, google):
        super().__init__(("127.0.0.1", 0), RecorderRequest)
        self.google = google
        self.requests = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class RecorderRequest(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        kind = {"Content-Type": self.headers["Content-Type"]}
        request = urllib.request.Request(self.server.google + self.path, data=body, headers=kind)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass
