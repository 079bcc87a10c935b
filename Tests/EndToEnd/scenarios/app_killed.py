"""The app's library against the real worker: killed during refreshes, answers lost, the worker killed and restarted in
between.

Each start of the app is a separate process, with its tokens in files. None of these faults may sign its user out.
"""

import http.client
import http.server
import subprocess
import threading

from accounts import Accounts
from faults import Clocks
from harness import BINARIES

HOUR = 3600


class Network(http.server.ThreadingHTTPServer):
    """Forwards requests to the worker, and can keep its answers back."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Forward)
        self.worker_port = port
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.loses = None  # "request" or "answer", of refreshes
        self.holds = False  # True if lost answers keep their connections open until `released`
        self.answered = threading.Event()  # set when the worker has answered a refresh whose answer is lost
        self.released = threading.Event()
        self.failures = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # The app of this connection was killed.


class Forward(http.server.BaseHTTPRequestHandler):
    def forward(self):
        network = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        loses = network.loses if self.path == "/api/auth/refresh" else None
        if loses == "request":
            return self.cut()
        worker = http.client.HTTPConnection("127.0.0.1", network.worker_port, timeout=60)
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
        try:
            worker.request(self.command, self.path, body, headers)
            answer = worker.getresponse()
            content = answer.read()
        except OSError as error:
            network.failures.append(error)
            return self.cut()
        finally:
            worker.close()
        if loses == "answer":
            assert answer.status == 200, "the refresh whose response is lost succeeds in the worker"
            network.answered.set()
            if network.holds:
                network.released.wait(60)
            return self.cut()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    do_GET = do_POST = forward

    def cut(self):
        self.close_connection = True
        self.connection.close()

    def log_message(self, *arguments):
        pass


def scenario(fixture):
    accounts = Accounts(fixture)
    clocks = Clocks(fixture, accounts)
    network = Network(accounts.port)
    folder = fixture.folder / "app"
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]

    def start(action):
        return subprocess.Popen(
            [BINARIES / "AccountExample", network.url, folder, action],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def run(action, stdin="", expect=0):
        app = start(action)
        out, err = app.communicate(stdin, timeout=120)
        assert app.returncode == expect, f"{action} exits with the expected code; it wrote: {out}{err}"
        return out + err

    def check_session(fault):
        """Starts the app again, and once more after an hour: its access token is refused by then, and it refreshes."""
        for hours in (0, 1):
            if hours:
                clocks.advance(hours * HOUR)
            assert "knows user" in run("call"), f"the user is still signed in after {fault}"
        assert fixture.rows("SELECT count(*) AS n FROM sessions")[0]["n"] == 1, f"one session is left after {fault}"

    def restart_worker():
        accounts.worker.kill()
        accounts.start(environment=clocks.environment)

    def lose(what, restarts=False):
        network.loses = what
        assert "could not be reached" in run("refresh", expect=1), f"the {what} is lost on the way"
        network.loses = None
        if restarts:
            restart_worker()

    def kill_app(restarts=False):
        """Kills the app after the worker has rotated its token, and before it has the answer."""
        network.answered.clear()
        network.released.clear()
        network.loses, network.holds = "answer", True
        app = start("refresh")
        assert network.answered.wait(60), "the worker answers the refresh"
        app.kill()
        app.wait()
        app.communicate()
        network.released.set()
        network.loses, network.holds = None, False
        if restarts:
            restart_worker()

    def store_half():
        """Restores the state of a process that dies between its two writes of a refresh."""
        access = (folder / "ce.access_token").read_text()
        run("refresh")
        (folder / "ce.access_token").write_text(access)

    run("sign-in", grant["access_token"] + "\n")
    check_session("the sign-in")
    for delay in (0, 12, 61, HOUR):
        for fault, happen in [
            ("a lost request", lambda: lose("request")),
            ("a lost answer", lambda: lose("answer")),
            ("a lost answer and a worker that was killed", lambda: lose("answer", restarts=True)),
            ("an app that was killed", kill_app),
            ("an app that was killed, and a worker too", lambda: kill_app(restarts=True)),
            ("half a save", store_half),
        ]:
            happen()
            if delay:
                clocks.advance(delay)
            check_session(f"{fault} and {delay} s")
    # Answers are lost repeatedly: each start of the app presents the same token.
    for _ in range(3):
        lose("answer")
        clocks.advance(61)
    check_session("three lost answers in a row")

    assert "logged out" in run("log-out"), "the log-out succeeds"
    assert "No user is signed in" in run("call", expect=1), "the app stays signed out"
    assert fixture.rows("SELECT count(*) AS n FROM sessions")[0]["n"] == 0, "the log-out ends the session"
    assert not network.failures, "the worker answers each request"
    network.shutdown()
    accounts.close()
    return "24 faults of the app, the network and the worker did not sign out any user"
