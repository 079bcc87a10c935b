"""A fake Gmail, and a function on another machine that fetches mail with the code in docs/services.md."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request

from harness import ROOT

# The code of the function, before it had a worker and, with its token, after.
FUNCTION = '''
def unread(user_id):
    request = urllib.request.Request(
        os.environ["GMAIL"] + "/gmail/v1/users/me/messages?q=is:unread",
        headers={"Authorization": f"Bearer {access_token(user_id)}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return [message["id"] for message in json.load(answer)["messages"]]

import sys
print(json.dumps(unread(sys.argv[1])))
'''


def documented_function():
    """The first Python of docs/services.md: ten lines in addition to the imports."""
    text = (ROOT / "docs" / "services.md").read_text()
    section = re.split(r"\n##+ ", text.split("## From Python\n", 1)[1], maxsplit=1)[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 1, "docs/services.md shows one piece of Python there"
    lines = [line for line in blocks[0].splitlines() if line and not line.startswith("import ")]
    assert len(lines) <= 10, "the documented function has at most ten lines"
    return blocks[0]


def fetch(user, **environment):
    """Runs the function in its own process; returns the ids of the user's mail, or its error."""
    result = subprocess.run(
        [sys.executable, "-c", documented_function() + FUNCTION, user],
        capture_output=True, text=True, timeout=120, env={**os.environ, **{k: str(v) for k, v in environment.items()}},
    )
    return json.loads(result.stdout) if result.returncode == 0 else result.stderr


class Gmail(http.server.ThreadingHTTPServer):
    """Serves one message for each token that is valid at the fake Google, named after its account."""

    daemon_threads = True

    def __init__(self, sandbox):
        super().__init__(("127.0.0.1", 0), GmailRequest)
        self.sandbox = sandbox
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class GmailRequest(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        owner = self.owner()
        body = json.dumps({"messages": [{"id": f"message-of-{owner}"}]} if owner else {}).encode()
        self.send_response(200 if owner else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def owner(self):
        """The account of the token, according to the fake Google."""
        headers = {"Authorization": self.headers["Authorization"]}
        request = urllib.request.Request(self.server.sandbox.url + "/v1/userinfo", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["email"]
        except urllib.error.HTTPError:
            return None

    def log_message(self, *arguments):
        pass
