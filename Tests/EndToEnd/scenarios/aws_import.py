"""Grants are imported from AWS Secrets Manager with Amazon's own program; an import can be started again, and newer
grants are not overwritten.

The script is deploy/import-from-aws. The fake AWS is moto's server, which checks signatures, session tokens and
permissions.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from expectations import wait_for
from harness import CLIENT, ROOT, Skipped
from integrity import damage

# It checks the file that a dry run must not create.
STORE = "sqlite"

REGION = "eu-west-1"
# More than one batch of the worker's two hundred records.
COUNT = 230
# The number of secrets that the script reads at a time.
BATCH = 7


class Moto:
    def __init__(self, program, fixture):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        with open(fixture.folder / "moto.log", "wb") as log:
            self.process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
        wait_for(self.answers, 60, "moto's server answers")

    def answers(self):
        try:
            return self.post("/moto-api/reset", b"", {})
        except (urllib.error.URLError, ConnectionError):
            return False

    def post(self, path, body, headers):
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode() or "{}"

    @staticmethod
    def scope(service):
        """The part of a signature from which moto finds the service while it does not check signatures."""
        return (
            f"AWS4-HMAC-SHA256 Credential=x/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=x"
        )

    def secrets(self, operation, **fields):
        headers = {
            "Authorization": self.scope("secretsmanager"), "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": f"secretsmanager.{operation}",
        }
        return json.loads(self.post("/", json.dumps(fields).encode(), headers))

    def put(self, name, content):
        text = content if isinstance(content, str) else json.dumps(content)
        self.secrets("CreateSecret", Name=name, SecretString=text)

    def query(self, service, action, wanted, version, **fields):
        body = urllib.parse.urlencode({"Action": action, "Version": version, **fields}).encode()
        headers = {"Authorization": self.scope(service), "Content-Type": "application/x-www-form-urlencoded"}
        answer = self.post("/", body, headers)
        return [re.search(f"<{name}>(.*?)</{name}>", answer).group(1) for name in wanted]

    def iam(self, action, wanted=(), **fields):
        return self.query("iam", action, wanted, "2010-05-08", **fields)

    def user(self, name, *actions):
        """The environment of a user with these permissions; all keys are made before moto begins to check them."""
        self.iam("CreateUser", UserName=name)
        if actions:
            self.iam("PutUserPolicy", UserName=name, PolicyName="p", PolicyDocument=self.policy(actions))
        key, secret = self.iam("CreateAccessKey", ("AccessKeyId", "SecretAccessKey"), UserName=name)
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}

    def session(self, *actions):
        """The environment of a session, whose token is part of the signed request."""
        trust = json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]})
        (arn,) = self.iam("CreateRole", ("Arn",), RoleName="r", AssumeRolePolicyDocument=trust)
        self.iam("PutRolePolicy", RoleName="r", PolicyName="p", PolicyDocument=self.policy(actions))
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        values = self.query("sts", "AssumeRole", names, "2011-06-15", RoleArn=arn, RoleSessionName="s")
        return dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), values, strict=True))

    @staticmethod
    def policy(actions):
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
        return json.dumps({"Version": "2012-10-17", "Statement": [statement]})

    def checks_signatures(self, does):
        self.post(
            "/moto-api/reset-auth",
            b"0" if does else b"inf",
            {"Authorization": self.scope("iam"), "Content-Type": "text/plain"},
        )

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def program(name):
    own = ROOT / ".build" / "python" / "bin" / name
    path = str(own) if own.exists() else shutil.which(name)
    if not path:
        raise Skipped(f"{name} is not installed: scripts/ensure-python-tools installs it")
    return path


def record_calls(folder, environment):
    """Puts a program before aws that writes a line for each call; returns the file of these lines."""
    calls, wrapper = folder / "aws-calls", folder / "recording" / "aws"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$@" >>{shlex.quote(str(calls))}\nexec {shlex.quote(program("aws"))} "$@"\n')
    wrapper.chmod(0o755)
    environment["PATH"] = f"{wrapper.parent}:{environment['PATH']}"
    return calls


def batch_sizes(calls):
    """The number of secrets in each call that reads several."""
    lines = (line.split() for line in calls.read_text().splitlines())
    return [len(line) - line.index("--secret-id-list") - 1 for line in lines if "batch-get-secret-value" in line]


def iso_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.123456", time.gmtime(seconds))


def content(grant, **changes):
    """The JSON of a grant as the backend stored it."""
    fields = {
        "access_token": grant["access_token"], "refresh_token": grant["refresh_token"],
        "expires_at": iso_time(grant["expires_at"]), "expires_in": 3600, "scope": grant["scope"],
        "token_type": "Bearer", "created_at": iso_time(time.time() - 60), "google_user_id": "",
        "google_email": grant["email"],
        "google_name": "N", "google_verified_email": True,
    }
    fields.update(changes)
    return {name: value for name, value in fields.items() if value is not None}


def scenario(fixture):
    moto = Moto(program("moto_server"), fixture)
    try:
        return run_imports(fixture, moto)
    finally:
        moto.stop()


def run_imports(fixture, moto):
    fixture.generate_keys()
    grants = fixture.sandbox.create(COUNT)
    moto.put("Google-OAuth-Client-ID", CLIENT + "\n")
    for number, grant in enumerate(grants):
        moto.put(f"gmail/user/u{number}", content(grant, refresh_token=None) if number == 5 else content(grant))
    moto.put("gmail/user/broken", "{rubbish 1//BROKEN")
    moto.put("gmail/user-other/x", content(grants[0]))
    moto.put("gmail/user/going", content(grants[0]))
    moto.secrets("DeleteSecret", SecretId="gmail/user/going", RecoveryWindowInDays=7)
    permissions = [f"secretsmanager:{name}" for name in ("ListSecrets", "BatchGetSecretValue", "GetSecretValue")]
    importer, session = moto.user("importer", *permissions), moto.session(*permissions)
    unprivileged = moto.user("unprivileged")
    moto.checks_signatures(True)

    words = fixture.arguments()
    at = words.index("--client-id")
    worker = [*words[:at], *words[at + 2:]]
    aws = {
        "PATH": f"{Path(program('aws')).parent}:{os.environ['PATH']}", "AWS_ENDPOINT_URL": moto.url,
        "AWS_DEFAULT_REGION": REGION, "HOME": str(fixture.folder), "REFRESH_WORKER": shlex.join(worker),
        "AWS_MAX_ATTEMPTS": "2",
    }
    calls = record_calls(fixture.folder, aws)
    script = [ROOT / "deploy" / "import-from-aws", "gmail/user/"]
    outputs = []

    def import_secrets(credentials, *extra, expect=65):
        environment = {**fixture.environment, **aws, **credentials}
        result = subprocess.run([*script, *map(str, extra)], env=environment, capture_output=True, text=True)
        outputs.append(result.stdout + result.stderr)
        assert result.returncode == expect, f"it exits with {expect}, not {result.returncode}: {result.stderr[-2000:]}"
        return result.stderr

    # Options that the import does not know are refused, and so are those that the script's other command would lack.
    output = import_secrets(importer, "--nonsense", expect=64)
    assert "unknown flag '--nonsense'" in output, f"the import names the unknown option; it wrote: {output[-300:]}"
    for option in ("--database", "--database=x", "--config"):
        output = import_secrets(importer, option, "x", expect=64)
        assert "name the database in REFRESH_WORKER" in output, f"the script refuses {option}: {output[-300:]}"
    assert not fixture.database.exists(), "a refused option stores nothing"

    # A dry run stores nothing and does not create a database.
    calls.write_text("")
    output = import_secrets(importer, "--dry-run", "--log-level", "info")
    sizes = batch_sizes(calls)
    whole, rest = divmod(COUNT + 1, BATCH)
    assert sizes == [BATCH] * whole + [rest] * (rest > 0), f"the script reads {BATCH} secrets at a time, not {sizes}"
    assert f"{COUNT} to store, 0 to replace, 0 to keep, 1 bad" in output, (
        f"the dry run counts the secrets; it wrote: {output[-300:]}"
    )
    assert "user 'u7': would be stored" in output, "the dry run names each user"
    assert not fixture.database.exists(), "the dry run makes no database"

    # The reason of each refusal is printed, and nothing is stored.
    def refused(credentials, *names):
        result = subprocess.run(
            script, env={**fixture.environment, **aws, **credentials}, capture_output=True, text=True
        )
        outputs.append(result.stdout + result.stderr)
        assert result.returncode != 0, "a refused import fails"
        assert all(name in result.stderr for name in names), f"it says why; it wrote: {result.stderr[-1000:]}"
        assert not fixture.database.exists(), "a refused import stores nothing"

    refused({}, "credentials")
    refused(unprivileged, "secretsmanager:ListSecrets")
    refused({**importer, "AWS_SECRET_ACCESS_KEY": "not/the+key"}, "SignatureDoesNotMatch")

    # Killed halfway and started again: every grant is stored, none twice.
    process = subprocess.Popen(
        script, env={**fixture.environment, **aws, **session}, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_for(lambda: fixture.database.exists() and stored(fixture), 300, "the first page is stored", pause=0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    partly = len(fixture.rows())
    assert 0 < partly < COUNT, "the kill interrupts the import"
    output = import_secrets(session)
    assert f"reading {COUNT - partly + 1} of {COUNT + 1} secrets" in output, "stored secrets are not read again"
    assert f"{COUNT - partly} stored, 0 replaced, 0 kept, 1 bad" in output, (
        f"the second import continues the first; it wrote: {output[-300:]}"
    )
    assert "gmail/user/broken" in output and "BROKEN" not in output, (
        "the import names the bad secret and does not show its content"
    )
    rows = fixture.grants()
    assert set(rows) == {f"u{number}" for number in range(COUNT)}, "exactly the users of the good secrets are stored"
    assert all(row["client_id"] == CLIENT for row in rows.values()), "each grant has the client id of its secret"

    # The grants work.
    assert fixture.run("token", "u7", "--min-ttl", "7200", expect=None).returncode == 0, "an imported grant works"
    output = fixture.run("grants", "show", "u5").stdout
    assert "refresh token   none" in output, "a secret without a refresh token is imported"

    output = import_secrets(session)
    assert "0 stored, 0 replaced, 0 kept, 1 bad" in output, (
        f"a second import changes nothing; it wrote: {output[-300:]}"
    )

    # --replace stores only newer grants.
    moto.checks_signatures(False)
    newer = fixture.sandbox.create(email="newer@example.com")[0]
    for number, changes in (
        (1, {"created_at": iso_time(time.time() + 1)}),
        (2, {"created_at": iso_time(time.time() - 86400)}),
    ):
        text = json.dumps(content(newer, google_email=None, **changes))
        # moto dates versions in whole seconds: this version needs a later date than the previous one.
        last = int(time.time())
        wait_for(lambda: int(time.time()) > last, 10, "the clock reaches the next second")
        moto.secrets("PutSecretValue", SecretId=f"gmail/user/u{number}", SecretString=text)
    moto.checks_signatures(True)
    output = import_secrets(session, "--replace", "--dry-run")
    assert f"1 to replace, {COUNT - 1} to keep" in output, (
        f"the dry run announces one replacement; it wrote: {output[-300:]}"
    )
    assert fixture.grants()["u1"]["generation"] == 1, "the dry run replaces nothing"
    output = import_secrets(session, "--replace")
    assert f"1 replaced, {COUNT - 1} kept" in output, f"the import takes the newer secret; it wrote: {output[-300:]}"
    generations = {user: row["generation"] for user, row in fixture.grants().items() if row["generation"] != 1}
    assert generations == {"u1": 2}, "the import replaces only the newer refresh token"
    assert damage(fixture) == {}, "the database is intact"

    secrets = [
        value for one in (importer, unprivileged, session) for name, value in one.items() if name != "AWS_ACCESS_KEY_ID"
    ]
    secrets += [grant[name] for grant in grants for name in ("access_token", "refresh_token")]
    leaked = [number for number, secret in enumerate(secrets) if any(secret in text for text in outputs)]
    assert not leaked, "no secret is printed"
    return f"{COUNT} grants; killed after {partly}"


def stored(fixture):
    try:
        return fixture.rows()
    except Exception:  # the tables are being made
        return []
