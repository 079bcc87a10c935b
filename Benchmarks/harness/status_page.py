"""The status page of a running worker: the time of each answer, and its size."""

import http.client
import socket
import time

from . import daemon


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("worker", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


def ask(path, requests, pause):
    """Asks for the page over one connection, like a browser, with a pause before each further request.

    The time of a request is that of the whole answer, so it includes waits for a processor while the worker is busy.
    """
    connection = Connection(path)
    milliseconds = []
    for number in range(requests):
        if number:
            time.sleep(pause)
        began = time.perf_counter()
        connection.request("GET", "/")
        answer = connection.getresponse()
        body = answer.read()
        milliseconds.append((time.perf_counter() - began) * 1000)
        if answer.status != 200 or b"</html>" not in body:
            raise SystemExit(f"the status page is wrong: {answer.status} {body[:200]!r}")
    connection.close()
    ordered = sorted(milliseconds)
    return {"requests": requests, "first_ms": milliseconds[0], "bytes": len(body),
            "ms": {name: daemon.quantile(ordered, fraction)
                   for name, fraction in [("p50", 0.5), ("p99", 0.99), ("most", 1)]}}
