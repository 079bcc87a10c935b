"""Notices that a library for Standard Webhooks checks: with both forms of a secret, and with two.
`notices test` says what the receiver answered."""

import base64
import json
import subprocess

from accounts import NOTICE_SECRET, Accounts, user_token
from harness import Skipped
from oauth_libraries import PYTHON

# Checks one notice with each of the secrets, and prints how many accept it.
CHECK = """
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
request = json.load(sys.stdin)
accepting = 0
for secret in request["secrets"]:
    try:
        assert Webhook(secret).verify(request["body"], request["headers"]) == json.loads(request["body"])
        accepting += 1
    except WebhookVerificationError:
        pass
print(accepting)
"""


def scenario(fixture):
    if subprocess.run([PYTHON, "-c", "import standardwebhooks"], capture_output=True).returncode != 0:
        raise Skipped("scripts/ensure-python-tools is needed")
    accounts = Accounts(fixture, start=False)
    new = "whsec_" + base64.b64encode(b"the new secret, with 32 bytes +/").decode()
    text = base64.b64encode(NOTICE_SECRET.encode()).decode()
    wrong = "whsec_" + base64.b64encode(bytes(32)).decode()
    accounts.write("notice", f"{NOTICE_SECRET}\n{new}")
    accounts.start()

    accounts.connect(fixture.sandbox.create(email="u@gmail.com")[0], user_token("u")).expect(201)
    accounts.disconnect(user_token("u"))
    accounts.backend.wait_for("u", 1)
    assert accepting(accounts.backend.requests[-1], [text, new, wrong]) == 2, "the library accepts either secret"

    result = json.loads(test(accounts, "--json").stdout)
    assert result["accepted"] and result["status"] == 204, f"the backend accepts the test notice: {result}"
    posted = accounts.backend.notices[-1]
    assert (posted["id"], posted["type"], posted["data"]) == (result["notice"], "test", {}), "the backend gets it"
    assert accepting(accounts.backend.requests[-1], [text, new, wrong]) == 2, "the library accepts either secret"

    # The receiver's secret alone, in the form of the libraries.
    accounts.write("notice", new)
    test(accounts, expect=69)
    assert accounts.backend.forged == 1, "the backend knows only the other secret"
    accounts.backend.forged = 0
    accounts.write("notice", NOTICE_SECRET)
    accounts.backend.refusals = 1
    refused = test(accounts, expect=69).stdout
    assert refused.startswith("refused: status 503 after "), f"it prints the status: {refused}"
    assert test(accounts).stdout.startswith("accepted: status 204 after "), "it prints the status and the time"
    accounts.extra[accounts.extra.index("--notice-url") + 1] = "http://127.0.0.1:9/"
    silent = test(accounts, expect=69).stdout
    assert silent.startswith("no answer: connect"), f"it says why no answer came: {silent}"
    assert len(accounts.backend.notices) == 3, "a test notice is posted once"
    accounts.close()


def test(accounts, *flags, expect=0):
    """Runs `notices test` with the worker's settings."""
    start = accounts.extra.index("--notice-url")
    return accounts.fixture.run("notices", "test", *accounts.extra[start : start + 4], *flags, expect=expect)


def accepting(request, secrets):
    headers, body = request
    given = json.dumps({"headers": headers, "body": body, "secrets": secrets})
    result = subprocess.run([PYTHON, "-c", CHECK], input=given, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, f"the library reads the notice: {result.stderr}"
    return int(result.stdout)
