"""A key ring that age or openssl decrypts: start, reload, rotation, and each with a program that fails.

The ring is on the disk in its encrypted form only, and no message or log shows a key.
"""

import shlex
import shutil
import signal
import subprocess
import time

from expectations import wait_for
from harness import Skipped
from key_rings import readiness

GRANTS = 5


class Tool:
    """A program that encrypts, with a key in a file of the scenario's folder."""

    def __init__(self, folder, opening, closing, secret):
        self.secret = secret
        gate = folder / "program-fails"
        # The gate lets it fail at will, as a KMS that is out of reach does.
        self.opening = gated(gate, opening)
        self.closing = closing
        self.gate = gate

    def fail(self):
        self.gate.touch()

    def recover(self):
        self.gate.unlink()

    def settings(self):
        return {"REFRESH_WORKER_KEY_COMMAND": self.opening, "REFRESH_WORKER_KEY_WRAP_COMMAND": self.closing}


def gated(gate, command):
    return f"sh -c 'if [ -e {gate} ]; then echo the KMS is away >&2; exit 9; fi; {command}'"


def age(folder):
    if not shutil.which("age"):
        raise Skipped("age is not installed: scripts/ensure-packages check installs it")
    identity = folder / "identity"
    subprocess.run(["age-keygen", "-o", identity], check=True, capture_output=True)
    recipient = next(word for word in identity.read_text().split() if word.startswith("age1"))
    return Tool(folder, f"age --decrypt --identity {identity}", f"age --recipient {recipient}", identity)


def openssl(folder):
    password = folder / "password"
    password.write_text("a password of the scenario\n")
    cipher = f"openssl enc -aes-256-cbc -pbkdf2 -pass file:{password}"
    return Tool(folder, f"{cipher} -d", cipher, password)


def scenario(fixture):
    fixture.sandbox.settings(lifetime=3600, rotation=True, strict_rotation=True)
    first, second = age(fixture.folder), openssl(fixture.folder)
    fixture.environment |= first.settings()
    fixture.run("keys", "generate")
    assert is_encrypted(fixture.keys), "the ring is never on the disk in plain text"
    outputs = with_tool(fixture, first, "age")

    # To another program: the file is encrypted again, by hand.
    former, fixture.keys = fixture.keys, fixture.folder / "keys.openssl"
    fixture.keys.write_bytes(piped(second.closing, piped(first.opening, former.read_bytes())))
    fixture.environment |= second.settings()
    outputs += with_tool(fixture, second, "openssl")
    return f"{len(outputs)} outputs without a key"


def piped(command, content):
    return subprocess.run(shlex.split(command), input=content, capture_output=True, check=True).stdout


def is_encrypted(file):
    return b"# The keys of" not in file.read_bytes()


def with_tool(fixture, tool, name):
    outputs = []

    def run(*words, expect=0):
        result = fixture.run(*words, expect=expect)
        outputs.append(result.stdout + result.stderr)
        return result

    users = [fixture.sandbox.create_expired(f"{name}-{number}@example.com") for number in range(GRANTS)]
    fixture.import_grants(users)
    count = len(fixture.rows())

    # A worker starts while the program fails: it waits, and begins as soon as it works.
    tool.fail()
    internal = fixture.folder / f"{name}.sock"
    worker = fixture.start("--listen-internal", f"unix:{internal}")
    wait_for(lambda: "waiting for the key command" in worker.errors.read_text(), 60, "it says that it waits")
    assert "ended with exit code 9; it wrote: the KMS is away" in worker.errors.read_text(), "it says why"
    assert run("keys", "list", expect=74).stderr.count("the KMS is away") == 1, "a command ends, and says why"
    doctor = run("doctor", expect=78).stdout
    assert "FAULT  key ring" in doctor and "the KMS is away" in doctor, "doctor says why"
    tool.recover()
    worker.wait_started()
    assert "the key command works again" in worker.errors.read_text(), "it says that it goes on"
    wait_for(lambda: refreshed(worker) >= GRANTS, 60, "the new grants are refreshed")

    # A reload whose program fails: the keys in memory stay, with an alarm that ends by itself.
    tool.fail()
    worker.signal(signal.SIGHUP)
    wait_for(lambda: alarms(worker), 60, "an alarm")
    assert "a restart would fail" in worker.errors.read_text(), "the alarm says what a restart would do"
    before = refreshed(worker)
    due(fixture)
    wait_for(lambda: refreshed(worker) >= before + count, 60, "the worker goes on with the keys in memory")
    tool.recover()
    wait_for(lambda: readiness(internal) == (200, "ok"), 60, "the program is tried again")

    # The rotation writes the file in its encrypted form, and the worker takes it without a reload.
    former = key_ids(run("keys", "list"))
    rotated = run("keys", "rotate").stdout
    assert "finished" in rotated, "the rotation finishes while the worker runs"
    run("keys", "add-binding")
    run("keys", "retire", former[0])
    assert is_encrypted(fixture.keys), "the file stays encrypted"
    assert len(key_ids(run("keys", "list"))) == len(former) + 2, "the ring has a new key and a new binding key"
    before = refreshed(worker)
    due(fixture)
    wait_for(lambda: refreshed(worker) >= before + count, 60, "the worker refreshes with the new key")

    # A program that writes something else does not replace the file.
    content = fixture.keys.read_bytes()
    good = fixture.environment["REFRESH_WORKER_KEY_WRAP_COMMAND"]
    for bad in ("cat", "false", "head -c 40", "sh -c 'sleep 1000 & exit 3'"):
        fixture.environment["REFRESH_WORKER_KEY_WRAP_COMMAND"] = bad
        refused = run("keys", "add-binding", expect=None)
        assert refused.returncode in (74, 78), f"`{bad}` is refused, not {refused.returncode}"
        assert fixture.keys.read_bytes() == content, f"the file is unchanged after `{bad}`"
        assert "FAULT  key wrap command" in run("doctor", expect=78).stdout, f"doctor finds `{bad}`"
    fixture.environment["REFRESH_WORKER_KEY_WRAP_COMMAND"] = good
    assert "ok     key wrap command" in run("doctor", expect=None).stdout, "doctor tries the right one"

    worker.stop()
    run("--run-once", expect=None)
    texts = [*outputs, worker.errors.read_text(), worker.metrics.read_text()]
    for key in key_material(tool, fixture.keys):
        assert not any(key in text for text in texts), "no output shows a key"
    return texts


def key_material(tool, file):
    """The keys of the ring, as the program prints them."""
    text = piped(tool.opening, file.read_bytes()).decode()
    keys = [line.split()[1] for line in text.splitlines() if line and line[0] != "#"]
    assert len(keys) >= 3, "the ring has several keys"
    return keys


def key_ids(listed):
    return [line.split()[0] for line in listed.stdout.splitlines()]


def alarms(worker):
    return worker.events("alarm", kind="key_file_unreadable")


def due(fixture):
    fixture.set_due(int(time.time() * 1000))


def refreshed(worker):
    return len(worker.events("refresh", outcome="refreshed"))
