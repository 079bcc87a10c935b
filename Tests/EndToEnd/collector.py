"""A collector of OpenTelemetry, which reads what it gets with OpenTelemetry's own messages, and can misbehave."""

import collections
import http.server
import json
import re
import select
import subprocess
import threading

from expectations import ROOT, wait_for
from harness import Skipped
from oauth_libraries import PYTHON

PAGE = ROOT / "docs" / "opentelemetry.md"

# Reads a list of bodies by path, and prints them as the messages have them: a field that OTLP does not have is an
# error. OTLP's JSON has ids as hexadecimal, where protobuf's own JSON has Base64.
READER = """
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

def with_base64(value):
    if isinstance(value, list):
        return [with_base64(element) for element in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
    changed = {}
    for key, inner in value.items():
        if key in ids:
            assert inner == inner.lower() and len(inner) == 2 * ids[key], f"{key} is not hexadecimal: {inner}"
            inner = base64.b64encode(bytes.fromhex(inner)).decode()
        changed[key] = with_base64(inner)
    return changed

messages = {"/v1/metrics": ExportMetricsServiceRequest, "/v1/traces": ExportTraceServiceRequest}
read = []
for path, body in json.load(sys.stdin):
    text = json.dumps(with_base64(json.loads(body)))
    message = json_format.Parse(text, messages[path](), ignore_unknown_fields=False)
    read.append(json_format.MessageToDict(message))
print(json.dumps(read))
"""
# 64 bits do not fit into the numbers of every JSON reader, so they are strings; values of enums are numbers.
STRINGS = {"timeUnixNano", "startTimeUnixNano", "endTimeUnixNano", "asInt", "intValue", "count"}
NUMBERS = {"aggregationTemporality", "kind", "code", "flags"}


def conform(value, key=""):
    """Asserts that a value of a body has the type that OTLP's JSON demands."""
    if isinstance(value, dict):
        for name, inner in value.items():
            assert re.fullmatch("[a-z][A-Za-z0-9]*", name), f"a field is in lowerCamelCase: {name}"
            conform(inner, name)
    elif isinstance(value, list):
        for inner in value:
            assert key != "bucketCounts" or isinstance(inner, str), f"{key} has strings: {inner}"
            conform(inner, key)
    else:
        assert key not in STRINGS or isinstance(value, str), f"{key} is a string: {value!r}"
        assert key not in NUMBERS or type(value) is int, f"{key} is a number: {value!r}"


class Collector(http.server.ThreadingHTTPServer):
    """Keeps each request. `mode` says how it answers: `ok`, `hang`, `flood` or `busy`."""

    daemon_threads = True

    def __init__(self, port=0):
        if subprocess.run([PYTHON, "-c", "import opentelemetry.proto"], capture_output=True).returncode != 0:
            raise Skipped("scripts/ensure-python-tools is needed")
        super().__init__(("127.0.0.1", port), CollectorRequest)
        self.port = self.server_address[1]
        self.mode = "ok"
        self.ended = threading.Event()
        # The path, the headers and the body of each request, and how many are open.
        self.requests = []
        self.open = 0
        self.most_open = 0
        # How many requests have come in each mode.
        self.seen = collections.Counter()
        self.changed = threading.Condition()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def close(self):
        """Stops listening: connections are refused from now on."""
        self.ended.set()
        self.shutdown()
        self.server_close()

    def bodies(self, path):
        return [body for requested, _, body in self.requests if requested == path]

    def wait_for(self, count, path="/v1/metrics", seconds=60):
        """Waits until so many more requests have come."""
        wanted = len(self.bodies(path)) + count
        wait_for(lambda: len(self.bodies(path)) >= wanted, seconds, f"{count} more requests to {path}")

    def read(self):
        """All requests as OpenTelemetry's messages have them, each as its path and its message."""
        requests = list(self.requests)
        for _, _, body in requests:
            conform(json.loads(body))
        given = json.dumps([[path, body.decode()] for path, _, body in requests])
        result = subprocess.run([PYTHON, "-c", READER], input=given, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, f"OpenTelemetry's messages read each body: {result.stderr[-2000:]}"
        return list(zip((path for path, _, _ in requests), json.loads(result.stdout), strict=True))

    def metrics(self):
        """The metrics of the last request by name, each with the attributes of its resource."""
        message = [message for path, message in self.read() if path == "/v1/metrics"][-1]
        assert len(message["resourceMetrics"]) == 1, "all metrics are of one resource"
        scopes = message["resourceMetrics"][0]["scopeMetrics"]
        return {metric["name"]: metric for scope in scopes for metric in scope["metrics"]}

    def resource(self, path="/v1/metrics"):
        message = [message for requested, message in self.read() if requested == path][-1]
        key = "resourceMetrics" if path == "/v1/metrics" else "resourceSpans"
        return attributes(message[key][0]["resource"])

    def spans(self):
        """All spans so far."""
        return [
            span
            for path, message in self.read()
            if path == "/v1/traces"
            for resource in message["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]


class CollectorRequest(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with server.changed:
            # The thread of a request that the worker has given up ends soon.
            server.changed.wait_for(lambda: server.open == 0, 1)
            server.open += 1
            server.most_open = max(server.most_open, server.open)
            server.seen[server.mode] += 1
        try:
            self.answer(server, body)
        except OSError:
            pass
        finally:
            with server.changed:
                server.open -= 1
                server.changed.notify_all()

    def answer(self, server, body):
        if server.mode == "ok":
            server.requests.append((self.path, dict(self.headers), body))
        if server.mode == "hang":
            # Until the worker gives up.
            while server.mode == "hang" and not server.ended.is_set():
                if select.select([self.connection], [], [], 0.1)[0]:
                    return
            return
        if server.mode == "busy":
            self.send_response(503)
            self.send_header("Retry-After", "1")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if server.mode == "ok":
            self.wfile.write(b"{}")
        while server.mode == "flood":
            self.wfile.write(b" " * 65536)

    def log_message(self, *arguments):
        pass


def attributes(message):
    return {
        attribute["key"]: next(iter(attribute["value"].values())) for attribute in message.get("attributes", [])
    }


def value(metric, **wanted):
    """The value of the data point with these attributes."""
    points = (metric.get("sum") or metric.get("gauge"))["dataPoints"]
    for point in points:
        if attributes(point) == wanted:
            return float(point["asInt"] if "asInt" in point else point["asDouble"])
    raise AssertionError(f"{metric['name']} has a data point with {wanted}: {points}")


def documented():
    """The unit of each metric in the page's table."""
    rows = re.findall(r"^\| `[a-z_]+` \| `([a-z._]+)` \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    assert rows, "the page has the table of metrics"
    return {name: unit.strip().strip("`") for name, unit in rows}
