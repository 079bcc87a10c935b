"""Services that get their tokens through unmodified OAuth libraries, with the code in docs/services-examples.md, and a
fake Gmail that can refuse a token once."""

import json
import os
import re
import ssl
import subprocess

import mail
from harness import ROOT, Skipped

EXAMPLES = ROOT / "docs" / "services-examples.md"
PYTHON = ROOT / ".build" / "python" / "bin" / "python"

# The code around a library's lines of the document. It reads one command a line, and answers each with a line of JSON.
PYTHON_PROGRAM = """
import json, os, sys, time, datetime

TOKEN_URL, SERVICE, CREDENTIAL, USER = (os.environ[name] for name in ("TOKEN_URL", "SERVICE", "CREDENTIAL", "USER"))
state = {}

def connect():
    if "session" not in state:
        exec(LINES, {"TOKEN_URL": TOKEN_URL, "SERVICE": SERVICE, "CREDENTIAL": CREDENTIAL, "USER": USER}, state)
    return state["session"]

def expire():
    if "credentials" in state:
        state["credentials"].expiry = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    else:
        session = connect()
        session.token = {**session.token, "expires_in": -1, "expires_at": time.time() - 1}

def get():
    response = connect().get(os.environ["GMAIL"] + "/gmail/v1/users/me/messages")
    return {"status": response.status_code, "messages": [m["id"] for m in response.json().get("messages", [])]}

for line in sys.stdin:
    try:
        answer = get() if line.strip() == "get" else expire() or {}
    except Exception as error:
        answer = {"error": type(error).__name__, "text": str(error), "retryable": getattr(error, "retryable", None)}
    print(json.dumps(answer), flush=True)
"""

GO_PROGRAM = """
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"golang.org/x/oauth2"
)

type answer struct {
	Status   int      `json:"status,omitempty"`
	Messages []string `json:"messages"`
	Error    string   `json:"error,omitempty"`
	Text     string   `json:"text,omitempty"`
}

func get(session *http.Client) answer {
	response, err := session.Get(os.Getenv("GMAIL") + "/gmail/v1/users/me/messages")
	if err != nil {
		var retrieve *oauth2.RetrieveError
		kind := "other"
		if errors.As(err, &retrieve) {
			kind = "RetrieveError"
		}
		return answer{Error: kind, Text: err.Error()}
	}
	defer response.Body.Close()
	var body struct{ Messages []struct{ ID string } }
	json.NewDecoder(response.Body).Decode(&body)
	result := answer{Status: response.StatusCode, Messages: []string{}}
	for _, message := range body.Messages {
		result.Messages = append(result.Messages, message.ID)
	}
	return result
}

func main() {
	TOKEN_URL, USER := os.Getenv("TOKEN_URL"), os.Getenv("USER")
	SERVICE, CREDENTIAL := os.Getenv("SERVICE"), os.Getenv("CREDENTIAL")
	LINES
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var result answer
		if lines.Text() == "get" {
			result = get(session)
		} else {
			token, _ := session.Transport.(*oauth2.Transport).Source.Token()
			token.Expiry = time.Now().Add(-time.Second)
		}
		text, _ := json.Marshal(result)
		fmt.Println(string(text))
	}
}
"""


def documented(heading):
    """The code below a heading of docs/services-examples.md."""
    section = EXAMPLES.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```[a-z]+\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 1, f"the document shows one piece of code for {heading}"
    return blocks[0]


class Service:
    """A process with one library, which reads the mail of one user."""

    def __init__(self, command, user, environment):
        self.user = user
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        )

    @classmethod
    def in_python(cls, heading, user, environment):
        program = f"LINES = {documented(heading)!r}\n{PYTHON_PROGRAM}"
        return cls([PYTHON, "-c", program], user, environment)

    @classmethod
    def in_go(cls, heading, user, environment, folder):
        source, program = folder / "service.go", folder / "service"
        source.write_text(GO_PROGRAM.replace("LINES", documented(heading)))
        # Debian's packages of libraries, and no modules from elsewhere.
        cache = str(folder / "go-cache")
        paths = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "", "GOCACHE": cache}
        built = subprocess.run(
            ["go", "build", "-o", program, source], capture_output=True, text=True, timeout=300,
            env={**os.environ, **paths},
        )
        assert built.returncode == 0, f"the Go program compiles; the compiler wrote: {built.stderr[-2000:]}"
        return cls([program], user, environment)

    def call(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the program with {self.user}'s library answers"
        return json.loads(line)

    def get(self):
        """Reads the user's mail, with a token from the library."""
        return self.call("get")

    def expire(self):
        """Lets the token in the library expire."""
        self.call("expire")

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


class Gmail(mail.Gmail):
    """Serves mail over TLS, remembers the tokens that it got, and can refuse the next calls with 401."""

    def __init__(self, sandbox, certificate, key):
        super().__init__(sandbox)
        self.RequestHandlerClass = GmailRequest
        self.tokens = []
        self.refusals = 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self):
        return f"https://localhost:{self.server_address[1]}"


class GmailRequest(mail.GmailRequest):
    def owner(self):
        self.server.tokens.append(self.headers["Authorization"].removeprefix("Bearer "))
        if self.server.refusals > 0:
            self.server.refusals -= 1
            return None
        return super().owner()


def require_libraries():
    """Skips the scenario on a machine without the libraries."""
    for command, what in [
        ([PYTHON, "-c", "import authlib, google.auth, requests_oauthlib"], "scripts/ensure-python-tools"),
        (["go", "version"], "Debian's golang-go"),
        (["test", "-d", "/usr/share/gocode/src/golang.org/x/oauth2"], "Debian's golang-golang-x-oauth2-dev"),
    ]:
        try:
            is_there = subprocess.run(command, capture_output=True, timeout=60).returncode == 0
        except FileNotFoundError:
            is_there = False
        if not is_there:
            raise Skipped(f"{what} is needed")
