"""A service and a backend in Swift, with the library WorkerTokens, over TCP and over the unix socket: mail is read, a
token that Google refuses is replaced, an ended grant says so, and the worker's notice is verified."""

import contextlib
import http.server
import json
import subprocess
import threading
import time

import mail
from accounts import SERVICE_KEY, Accounts, user_token
from harness import BINARIES
from ports import free_port

PROGRAM = BINARIES / "WorkerTokensExample"


def scenario(fixture):
    port = free_port()
    accounts = Accounts(fixture, "--listen-internal", f"127.0.0.1:{port}")
    gmail = mail.Gmail(fixture.sandbox)
    for number, worker in enumerate([f"unix:{accounts.socket}", f"http://127.0.0.1:{port}"]):
        # Its path needs escapes.
        user, email = f"team/ünit {number}?", f"u-{number}@gmail.com"

        def call(credential=SERVICE_KEY, expect=0, worker=worker, user=user):
            arguments = [worker, user, f"{gmail.url}/gmail/v1/users/me/messages"]
            return run(*arguments, given=credential + "\n", expect=expect)

        assert "no such user" in call(expect=1), "a user who is not stored is unknown"
        # Google refuses the stored token, which the worker takes for good. The grant itself works.
        grant = fixture.sandbox.create_expired(email)
        fixture.import_grants([{**grant, "expires_at": int(time.time()) + 3600}], user_id=user)
        output = call()
        assert output.startswith("Google refused the token"), f"Google refuses the first token: {output}"
        assert f"message-of-{email}" in output, f"the new token reads mail: {output}"
        output = call()
        assert "refused" not in output and f"message-of-{email}" in output, f"the new token is stored: {output}"
        assert "does not know the service's credential" in call("wrong", expect=1), "a wrong credential is named"

        accounts.disconnect(user_token(user))
        ended = call(expect=1)
        assert "must sign in with Google again (user_request)" in ended, f"the service sees the end: {ended}"
        notice = accounts.backend.wait_for(user, 1)[-1]
        assert notice["type"] == "grant.disconnected", "the backend is told"
        headers, body = accounts.backend.requests[-1]
        said = read_notice(fixture, headers, body)
        assert said == f"grant.disconnected of {user}: user_request\n", f"the notice is verified: {said}"
        forged = read_notice(fixture, headers, body.replace("user_request", "invalid_grant"), expect=1)
        assert "signature" in forged, f"a changed notice is refused: {forged}"
    gmail.shutdown()
    accounts.close()
    refuses_redirects()


def refuses_redirects():
    """The credential stays at the address that was named."""
    received = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            received.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with server(Elsewhere) as target:

        class Redirector(Elsewhere):
            def do_GET(self):
                self.send_response(302)
                self.send_header("Location", target)
                self.end_headers()

        with server(Redirector) as worker:
            output = run(worker, "alice", target, given=SERVICE_KEY + "\n", expect=1)
    assert "302" in output, f"the program says what it got: {output}"
    assert not received, "the redirect is not followed"


@contextlib.contextmanager
def server(handler):
    """Serves until the end of the block, and returns the address."""
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def read_notice(fixture, headers, body, expect=0):
    return run("notice", fixture.folder / "notice", given=json.dumps({"headers": headers, "body": body}), expect=expect)


def run(*arguments, given, expect):
    result = subprocess.run([PROGRAM, *arguments], input=given, capture_output=True, text=True, timeout=120)
    output = result.stdout + result.stderr
    assert result.returncode == expect, f"the program exits with {expect}; it wrote: {output}"
    assert "ya29" not in output and SERVICE_KEY not in output, "the program prints no token and no credential"
    return output
