"""A key ring that Amazon's KMS decrypts, through Amazon's own program: the commands of docs/key-command.md.

The fake KMS is moto's server, which checks signatures and permissions.
"""

import json
import os
import re
import signal
from pathlib import Path

from aws_import import REGION, Moto, program
from expectations import wait_for
from harness import ROOT
from key_rings import readiness

GRANTS = 3


def scenario(fixture):
    moto = Moto(program("moto_server"), fixture)
    try:
        return with_kms(fixture, moto)
    finally:
        moto.stop()


def kms(moto, operation, **fields):
    headers = {
        "Authorization": moto.scope("kms"), "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": f"TrentService.{operation}",
    }
    return json.loads(moto.post("/", json.dumps(fields).encode(), headers))


def documented(key):
    """The two settings as the page has them, with the id of a key."""
    page = (ROOT / "docs" / "key-command.md").read_text()
    section = page.split("## AWS KMS")[1].split("\n## ")[0]
    found = dict(re.findall(r"^    (REFRESH_WORKER_KEY_\w*COMMAND)=(.*)$", section, re.MULTILINE))
    assert set(found) == {"REFRESH_WORKER_KEY_COMMAND", "REFRESH_WORKER_KEY_WRAP_COMMAND"}, "the page has both"
    return {name: command.replace("alias/refresh-worker", key) for name, command in found.items()}


def with_kms(fixture, moto):
    fixture.sandbox.settings(lifetime=3600)
    key = kms(moto, "CreateKey")["KeyMetadata"]["KeyId"]
    operator, worker_user = moto.user("operator", "kms:Encrypt", "kms:Decrypt"), moto.user("worker", "kms:Decrypt")
    stranger = moto.user("stranger")
    moto.checks_signatures(True)
    commands = documented(key)
    fixture.environment |= {
        "PATH": f"{Path(program('aws')).parent}:{os.environ['PATH']}", "AWS_ENDPOINT_URL": moto.url,
        "AWS_DEFAULT_REGION": REGION, "AWS_MAX_ATTEMPTS": "2", **commands,
    }
    everyone = dict(fixture.environment)

    fixture.environment = {**everyone, **operator}
    fixture.run("keys", "generate")
    assert b"# The keys of" not in fixture.keys.read_bytes(), "the ring is never on the disk in plain text"
    users = [fixture.sandbox.create_expired(f"user{number}@example.com") for number in range(GRANTS)]
    fixture.import_grants(users)

    # Without the permission the worker waits, and says what KMS says.
    waiting = fixture.start(environment=stranger)
    wait_for(lambda: "waiting for the key command" in waiting.errors.read_text(), 60, "it says that it waits")
    assert "kms:Decrypt" in waiting.errors.read_text(), f"it shows KMS's reason: {waiting.errors.read_text()[-400:]}"
    waiting.signal(signal.SIGTERM)
    assert waiting.process.wait(timeout=60) == -signal.SIGTERM, "a stop ends the wait at once"

    # The worker needs no permission to encrypt.
    internal = fixture.folder / "internal.sock"
    worker = fixture.start("--listen-internal", f"unix:{internal}", environment=worker_user).wait_started()
    wait_for(lambda: len(worker.events("refresh", outcome="refreshed")) >= GRANTS, 60, "all grants are refreshed")
    assert "finished" in fixture.run("keys", "rotate").stdout, "the rotation finishes while the worker runs"
    before = fixture.keys.read_bytes()
    fixture.environment = {**everyone, **worker_user}
    refused = fixture.run("keys", "add-binding", expect=74)
    assert "kms:Encrypt" in refused.stderr, f"KMS's reason is shown: {refused.stderr[-400:]}"
    assert fixture.keys.read_bytes() == before, "the file is unchanged"

    # The worker loses its permission, and goes on until it has it again. (moto decrypts with a disabled key.)
    moto.checks_signatures(False)
    moto.iam("DeleteUserPolicy", UserName="worker", PolicyName="p")
    moto.checks_signatures(True)
    worker.signal(signal.SIGHUP)
    kind = "key_file_unreadable"
    wait_for(lambda: worker.events("alarm", kind=kind), 60, "a refused command raises an alarm")
    moto.checks_signatures(False)
    moto.iam("PutUserPolicy", UserName="worker", PolicyName="p", PolicyDocument=moto.policy(["kms:Decrypt"]))
    moto.checks_signatures(True)
    wait_for(lambda: readiness(internal) == (200, "ok"), 90, "the alarm ends without a reload")
    worker.stop()
    return ""
