"""`token` and `grants disconnect` end on SIGTERM: they wait only for an answer that may hold a token, and leave no
lease behind."""

import signal
import socket
import subprocess

from expectations import wait_for


class Command:
    """A command that runs in parallel with the scenario."""

    def __init__(self, fixture, name, *words, change=lambda word: word):
        self.errors = fixture.folder / f"{name}.errors"
        self.output = fixture.folder / f"{name}.output"
        with open(self.errors, "wb") as errors, open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [change(word) for word in fixture.arguments(*words)], stdout=output, stderr=errors,
                env=fixture.environment,
            )

    def stop(self, number=signal.SIGTERM):
        """Sends a signal, and returns when the command has said that it stops."""
        self.process.send_signal(number)
        wait_for(
            lambda: "stopping" in self.errors.read_text() or self.process.poll() is not None,
            60,
            "the signal is noticed",
        )

    def expect(self, code):
        ended = self.process.wait(timeout=60)
        assert ended == code, f"the command exits with the expected code; it wrote: {self.errors.read_text()[-500:]}"


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600, rotation=True, strict_rotation=True)
    fixture.generate_keys()
    grants = {name: sandbox.create_expired(f"{name}@example.com") for name in ("late", "stuck", "shared", "left")}
    fixture.import_grants(grants.values())

    def hold(name, value=True):
        sandbox.call("/control/grants/set", {"refresh_token": grants[name]["refresh_token"], "hold": value})

    def lease(name):
        return fixture.grants()[f"{name}@example.com"]["lease_owner"]

    # The answer in flight may be the only copy of a rotated refresh token: the command waits for it and stores it.
    hold("late")
    token = Command(fixture, "late", "token", "late@example.com")
    sandbox.call("/control/wait?holding=1")
    token.stop()
    assert token.process.poll() is None, "the command waits for the response"
    sandbox.call("/control/release", {})
    token.expect(143)
    assert token.output.read_text() == "", "a stopped command prints no token"
    assert lease("late") is None, "the lease is given back"
    assert not fixture.rows("SELECT * FROM workers"), "the command does not count as a worker"
    # Strict rotation: only the rotated token still works.
    fixture.run("token", "late@example.com", "--min-ttl", "86400")

    # A second signal does not wait.
    hold("stuck")
    token = Command(fixture, "stuck", "token", "stuck@example.com")
    sandbox.call("/control/wait?holding=1")
    token.stop(signal.SIGINT)
    token.process.send_signal(signal.SIGTERM)
    token.expect(143)
    sandbox.call("/control/release", {})

    # The command does not wait for another worker's refresh. The daemon refreshes only this grant.
    fixture.write("UPDATE grants SET due_at = due_at + 3600000 WHERE user_id <> ?", "shared@example.com")
    hold("shared")
    worker = fixture.start().wait_started()
    sandbox.call("/control/wait?holding=1")
    owner = lease("shared")
    # The command that a second signal ended is among the workers.
    workers = len(fixture.rows("SELECT * FROM workers"))
    token = Command(fixture, "shared", "token", "shared@example.com")
    wait_for(lambda: len(fixture.rows("SELECT * FROM workers")) > workers, 60, "the command has started")
    token.stop()
    token.expect(143)
    assert sandbox.call("/control/wait?holding=1") is not None and lease("shared") == owner, (
        "the daemon's request continues"
    )
    assert len(fixture.rows("SELECT * FROM workers")) == workers, "the command does not count as a worker"
    sandbox.call("/control/release", {})
    worker.stop()

    # Google's answer to a revocation is not worth a wait: the request is repeated later.
    silent = socket.create_server(("127.0.0.1", 0))
    disconnect = Command(
        fixture, "left", "grants", "disconnect", "left@example.com",
        change=lambda word: word if not word.endswith("/revoke") else f"http://127.0.0.1:{silent.getsockname()[1]}/revoke",
    )
    silent.settimeout(60)
    connection, _ = silent.accept()
    assert connection.recv(65536), "the revocation is sent"
    disconnect.stop()
    disconnect.expect(143)
    assert fixture.grants()["left@example.com"]["state"] == "disconnected", "the grant is ended in the database"
    assert lease("left") is None, "the lease is given back"
    assert "the revocation at Google has not succeeded yet" in disconnect.output.read_text(), (
        "the command names the remaining work"
    )
    connection.close()
    silent.close()
    return "four commands stopped"
