"""Functions on other machines: the internal listener over TLS, its certificate, and the routes that need a
credential."""

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import threading

import mail
from accounts import SERVICE_KEY, Accounts, Listener, user_token
from expectations import wait_for
from harness import passing
from ports import free_port
from tls import Authority, TLSListener


def scenario(fixture):
    authority = Authority(fixture.folder)
    certificate, key = authority.issue("first")
    # All addresses of the machine, so that other machines can connect.
    port = free_port("0.0.0.0")
    tls = ["--listen-internal", f"0.0.0.0:{port}", "--internal-certificate", certificate, "--internal-key", key]
    accounts = Accounts(fixture, *tls, start=False)
    refuses_to_start(fixture, accounts, tls, key)
    accounts.internal = TLSListener(port, authority)
    accounts.start()
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    accounts.connect(grant, user_token("ada")).expect(201)

    versions(port, authority)
    credentials(accounts)
    socket_beside(accounts)
    function(accounts, authority, f"https://localhost:{port}")
    reload(fixture, accounts, authority, port)
    stalls(accounts, port)
    accounts.close()
    metrics_and_expiry(fixture, accounts, authority, port)
    return ""


def refuses_to_start(fixture, accounts, tls, key):
    def refused(words, *flags):
        result = fixture.run(*accounts.extra, *flags, expect=78)
        for word in words:
            assert word in result.stderr, f"the refusal of {flags} names {word!r}"

    plain = Accounts(fixture, start=False)
    result = fixture.run(*plain.extra, "--listen-internal", tls[1], expect=78)
    for word in ["--internal-certificate", "unix:", "nginx"]:
        assert word in result.stderr, f"the refusal names {word!r}"
    refused(["No such file"], "--internal-certificate", fixture.folder / "none.pem")
    refused(["no certificate in PEM"], "--internal-certificate", key)
    refused(["does not belong"], "--internal-key", fixture.folder / "authority.key")
    key.chmod(0o644)
    refused([key.name, "chmod 600"])
    key.chmod(0o600)
    result = fixture.run(*plain.extra, *tls[2:], expect=78)
    assert "needs no TLS" in result.stderr, "a certificate for nothing but a unix socket is refused"
    # A socket from systemd is checked when it is there.
    with socket.create_server(("0.0.0.0", 0)) as listener:
        os.set_inheritable(listener.fileno(), True)
        worker = fixture.start(
            *plain.extra, "--listen-internal", "systemd:internal", prefix=passing(listener, "internal"),
            pass_fds=[listener.fileno()],
        )
        assert worker.process.wait(timeout=60) == 78, "a clear socket from systemd is refused"
        assert "--internal-certificate" in worker.errors.read_text(), "the refusal names the missing flag"


def versions(port, authority):
    """TLS 1.2 and 1.3, and nothing older."""
    for version, is_spoken in [
        (ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True),
    ]:
        context = authority.context()
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        try:
            with (
                socket.create_connection(("localhost", port), timeout=30) as raw,
                context.wrap_socket(raw, server_hostname="localhost") as wrapped,
            ):
                spoken = wrapped.version()
        except (ssl.SSLError, ConnectionError):
            spoken = None
        assert (spoken == version.name.replace("_", ".")) == is_spoken, f"{version.name} is spoken: {is_spoken}"


def credentials(accounts):
    """The answers to callers without a credential, or with a wrong one."""
    internal = accounts.internal
    accounts.vend("ada").expect(200)
    for bearer in (None, "wrong"):
        accounts.vend("ada", bearer=bearer).expect(401)
        assert internal.get("/status", bearer).expect(401).json["error"] == "unauthorized", "a stranger gets no status"
        assert internal.get("/readyz", bearer).expect(200).body == b"ready\n", "a stranger gets no details of readiness"
        internal.get("/", bearer).expect(401)
        internal.get("/users?user=ada", bearer).expect(401)
        internal.get("/healthz", bearer).expect(200)
    for bearer in (None, SERVICE_KEY):
        assert "--internal-metrics" in internal.get("/metrics", bearer).expect(404).json["message"], (
            "the refusal names the flag that opens the route"
        )
    assert "grants" in internal.get("/status", SERVICE_KEY).expect(200).json, "a service gets the status"
    assert internal.get("/readyz", SERVICE_KEY).expect(200).json["ready"], "a service gets the details of readiness"
    internal.get("/", SERVICE_KEY).expect(200)
    internal.get("/users?user=ada", SERVICE_KEY).expect(403)


def socket_beside(accounts):
    """The unix socket of the same worker serves this machine without TLS, and its status without a credential."""
    beside = Listener(accounts.socket)
    assert "grants" in beside.get("/status").expect(200).json, "the socket shows the status"
    beside.get("/metrics").expect(200)
    beside.get("/v1/grants/ada/token", SERVICE_KEY).expect(200)
    beside.get("/v1/grants/ada/token").expect(401)


def function(accounts, authority, url):
    """The function fetches mail with a token from the worker; its only secret is its credential."""
    gmail = mail.Gmail(accounts.sandbox)
    environment = {
        "GMAIL": gmail.url, "WORKER_URL": url, "WORKER_CREDENTIAL": SERVICE_KEY, "SSL_CERT_FILE": authority.file,
    }
    accounts.expire("ada")
    messages = mail.fetch("ada", **environment)
    assert messages == ["message-of-ada@gmail.com"], "the function reads the user's mail"
    assert "401" in mail.fetch("ada", **{**environment, "WORKER_CREDENTIAL": "wrong"}), "a wrong credential gets 401"
    assert "404" in mail.fetch("nobody", **environment), "a user without a grant gets 404"
    assert "CERTIFICATE_VERIFY_FAILED" in mail.fetch("ada", **{**environment, "SSL_CERT_FILE": "/dev/null"}), (
        "the function refuses a certificate that it does not trust"
    )
    gmail.shutdown()


class Callers:
    """Services that call continuously, each time over a new connection; no call may be refused."""

    def __init__(self, listener, count):
        self.listener = listener
        self.answers, self.failures = 0, []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.call) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def call(self):
        while not self.ended.is_set():
            try:
                self.listener.get("/v1/grants/ada/token", SERVICE_KEY).expect(200)
                self.answers += 1
            except Exception as error:
                self.failures.append(repr(error))
                return

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(60)
        assert not self.failures, "every call succeeds during the reloads"


def reload(fixture, accounts, authority, port):
    """New connections get the new certificate, open ones continue, no call fails; a broken pair changes nothing."""
    internal, worker = accounts.internal, accounts.worker
    lasting = internal.opened()
    assert internal.name_shown(lasting) == "first", "the first certificate is shown"

    def ask():
        lasting.request("GET", "/v1/grants/ada/token", headers={"Authorization": f"Bearer {SERVICE_KEY}"})
        answer = lasting.getresponse()
        answer.read()
        return answer.status

    assert ask() == 200, "the kept connection works"
    callers = Callers(internal, 3)
    for name in ["second", "third", "fourth"]:
        authority.issue(name, to="first")
        worker.signal(signal.SIGHUP)
        wait_for(lambda: internal.certificate_name() == name, 60, f"the {name} certificate is shown")
        assert ask() == 200, "the reload keeps the connection open"
    callers.stop()
    assert callers.answers > 0, "services call during the reloads"
    assert internal.name_shown(lasting) == "first", "the kept connection is still the first one"

    # Only the certificate is replaced: its key is missing.
    key = fixture.folder / "first.key"
    good = key.read_bytes()
    authority.issue("fifth", to="first")
    key.write_bytes(good)
    services = fixture.folder / "services.json"
    known = services.read_text()
    services.write_text(known.replace('"users": ["*"]', '"users": ["nobody"]'))
    worker.signal(signal.SIGHUP)
    wait_for(lambda: "does not belong" in worker.errors.read_text(), 60, "the broken pair is reported")
    assert "not reloaded: the settings, services" in worker.errors.read_text(), (
        "the worker says that nothing was reloaded"
    )
    assert internal.certificate_name() == "fourth", "the last good certificate is shown"
    accounts.vend("ada").expect(200)
    services.write_text(known)
    authority.issue("sixth", to="first")
    worker.signal(signal.SIGHUP)
    wait_for(lambda: internal.certificate_name() == "sixth", 60, "the repaired pair is used")
    lasting.close()


def stalls(accounts, port):
    """Handshakes that never end lose their connections and do not affect other clients."""
    stalled = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for client in stalled:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        client.settimeout(60)
    accounts.vend("ada").expect(200)
    for client in stalled:
        assert client.recv(1000) == b"", "a stalled handshake is closed without a response"
        client.close()
    # Plain HTTP on the TLS port.
    plain = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    plain.request("GET", "/healthz")
    status = None
    with contextlib.suppress(http.client.HTTPException, ConnectionError):
        status = plain.getresponse().status
    assert status is None, "plain HTTP gets no response"
    accounts.vend("ada").expect(200)


def metrics_and_expiry(fixture, accounts, authority, port):
    """The setting for metrics, and the warnings of an expired certificate."""
    authority.issue("late", days=-1, to="first")
    worker = accounts.worker = fixture.start(*accounts.extra, "--internal-metrics").wait_started()
    alarm = wait_for(
        lambda: worker.events("alarm", kind="certificate_expired"), 60, "an expired certificate is alarming"
    )
    assert "first.pem" in alarm[0]["text"] and "reload" in alarm[0]["text"], (
        "the alarm names the certificate and the remedy"
    )
    doctor = fixture.run(*accounts.extra, "doctor", expect=None).stdout
    lines = [line for line in doctor.splitlines() if "internal certificate" in line]
    assert len(lines) == 1 and lines[0].startswith("WARN") and "expired at" in lines[0], (
        "the log has one warning about the certificate"
    )

    authority.issue("short", days=3, to="first")
    worker.signal(signal.SIGHUP)
    internal = TLSListener(port, authority)
    wait_for(lambda: shown(internal) == "short", 60, "the new certificate is shown")

    def concerns():
        return {concern["kind"] for concern in json.loads(fixture.run("status", "--json").stdout)["concerns"]}

    wait_for(lambda: "certificate_expired" not in concerns(), 30, "the alarm has ended with its cause")
    end = ssl.cert_time_to_seconds(internal.opened().sock.getpeercert()["notAfter"])
    gauge = f"refresh_worker_internal_certificate_expiry_timestamp_seconds {end}\n".encode()
    assert gauge in internal.get("/metrics").expect(200).body, "the metrics show the end of the new certificate"
    internal.get("/status").expect(401)
    doctor = fixture.run(*accounts.extra, "doctor", expect=None).stdout
    assert "valid until" in doctor, "the doctor shows the end of the certificate"
    accounts.internal = internal
    accounts.close()


def shown(listener):
    try:
        return listener.certificate_name()
    except ssl.SSLError:
        return None
