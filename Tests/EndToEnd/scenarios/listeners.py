"""The listeners: refused settings, sockets from systemd, the mode of a unix socket, probes and draining."""

import contextlib
import json
import signal
import socket
import stat
import subprocess
import threading

from accounts import JWT_SECRET, SERVICE_KEY, Accounts, Listener, user_token
from expectations import wait_for
from harness import passing
from ports import free_port


def scenario(fixture):
    accounts = Accounts(fixture, start=False)
    refuses_to_start(fixture, accounts)

    # A socket from systemd: connections wait in it until the worker has started.
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    early = socket.create_connection(("127.0.0.1", port))
    early.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    inherited = [*accounts.extra, "--listen", "systemd:public"]
    accounts.worker = fixture.start(
        *inherited, prefix=passing(listener, "public"), pass_fds=[listener.fileno()]
    ).wait_started()
    assert early.makefile("rb").read().startswith(b"HTTP/1.1 200"), (
        "a client that connects before the start gets its response"
    )
    public = accounts.public = Listener(port)
    public.get("/v1/user/me", user_token("u-1")).expect(200)

    # The unix socket is closed to other users, and replaces one that a killed worker left.
    mode = stat.S_IMODE(accounts.socket.stat().st_mode)
    assert mode == 0o660, "the socket has its mode"
    accounts.worker.kill()
    assert accounts.socket.exists(), "a killed worker leaves its socket"
    # A port beside the socket, as for Prometheus and a browser.
    beside = Listener(free_port())
    accounts.extra += ["--listen-internal", f"127.0.0.1:{beside.address}"]
    accounts.worker = fixture.start(*accounts.extra, "--socket-mode", "0600").wait_started()
    wait_for(accounts.is_ready, 60, "it listens on its socket again")
    assert stat.S_IMODE(accounts.socket.stat().st_mode) == 0o600, "the socket has the requested mode"
    second = fixture.run(*accounts.extra, "--metrics-log", fixture.folder / "second.jsonl", expect=73)
    assert "listen" in second.stderr, "the second worker says that it cannot listen"
    assert accounts.is_ready(), "the first worker keeps its socket"
    public = accounts.public = Listener(accounts.port)

    # The probes of Kubernetes and curl.
    for path in ("/healthz", "/readyz", "/metrics", "/status", "/"):
        asked = ["curl", "--silent", "--fail", "--unix-socket", str(accounts.socket), f"http://localhost{path}"]
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0 and answer.stdout, f"curl gets {path}"
        assert beside.get(path).expect(200).body, f"the port beside the socket serves {path}"
    assert public.get("/readyz").expect(200).body == b"ready\n", "the public probe shows no details"
    metrics = accounts.internal.get("/metrics").expect(200)
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4"), (
        "the metrics have Prometheus's content type"
    )
    status = json.loads(fixture.run("status", "--json").stdout)
    assert set(accounts.internal.get("/status").expect(200).json) == set(status), (
        "the route reports what the command reports"
    )

    # Services are read again on SIGHUP; a broken file keeps the known ones.
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    accounts.connect(grant, user_token("u-1")).expect(201)
    accounts.vend("u-1").expect(200)
    beside.get("/v1/grants/u-1/token", SERVICE_KEY).expect(200)
    services = accounts.fixture.folder / "services.json"
    known = services.read_text()
    services.write_text("{")
    accounts.worker.signal(signal.SIGHUP)
    wait_for(lambda: "not reloaded" in accounts.worker.errors.read_text(), 60, "the broken file is reported")
    assert "CommandError" not in accounts.worker.errors.read_text(), "the log shows no type names"
    accounts.vend("u-1").expect(200)
    services.write_text(known.replace('"users": ["*"]', '"users": ["u-2"]'))
    accounts.worker.signal(signal.SIGHUP)
    wait_for(lambda: accounts.vend("u-1").status == 403, 60, "the new limits hold")
    beside.get("/v1/grants/u-1/token", SERVICE_KEY).expect(403)

    # Draining: a begun request gets its answer, /readyz reports 503 during that time, and then all connections are
    # closed.
    services.write_text(known)
    accounts.worker.signal(signal.SIGHUP)
    wait_for(lambda: accounts.vend("u-1").status == 200, 60, "the old limits hold again")
    fixture.sandbox.call("/control/grants/set", {"email": "ada@gmail.com", "hold": True})
    accounts.expire("u-1")
    answers = []
    caller = threading.Thread(target=lambda: answers.append(accounts.vend("u-1")))
    caller.start()
    fixture.sandbox.call("/control/wait?holding=1")
    accounts.worker.signal(signal.SIGTERM)
    wait_for(lambda: accounts.internal.get("/readyz").status == 503, 60, "not ready while draining")
    beside.get("/readyz").expect(503)
    fixture.sandbox.call("/control/release", {"email": "ada@gmail.com"})
    caller.join(30)
    assert answers and answers[0].status == 200, "the request that had begun is answered"
    assert accounts.worker.process.wait(timeout=60) == 0, "the worker stops gracefully"
    assert not accounts.socket.exists(), "the stop removes the socket's file"
    with socket.create_server(("127.0.0.1", beside.address)):
        pass  # The stop has freed the port.
    accounts.close()
    return ""


def refuses_to_start(fixture, accounts):
    """Each error names the fix, and has an exit code after which systemd does not restart the worker."""
    folder = fixture.folder

    def refused(words, *flags, code=78, inherited=None):
        command = fixture.arguments(*accounts.extra, *flags)
        if inherited:
            command = [*passing(inherited, "public"), *command]
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=fixture.environment,
            pass_fds=[inherited.fileno()] if inherited else [],
        )
        assert result.returncode == code, f"{flags} are refused with code {code}; the error: {result.stderr}"
        for word in words:
            assert word in result.stderr, f"the refusal of {flags} names {word!r}"
        assert JWT_SECRET not in result.stderr and SERVICE_KEY not in result.stderr, "no secret is printed"

    services = folder / "services.json"
    services.chmod(0o644)
    refused(["services.json", "chmod 600"])
    services.chmod(0o600)
    bad = accounts.write("bad-services.json", '{"services": [{"name": "a"}]}')
    refused(["bad-services.json", "services[0]"], "--services-file", bad)
    refused(["services-file", "No such file"], "--services-file", folder / "none.json")
    short = accounts.write("short", "too short")
    refused(["short", "32"], "--jwt-secret-file", short)
    open_secret = accounts.write("open", JWT_SECRET)
    open_secret.chmod(0o604)
    refused(["chmod 600"], "--jwt-secret-file", open_secret)
    refused(["notice", "32"], "--notice-secret-file", short)
    refused(["systemd", "nothing"], "--listen", "systemd:nothing")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(folder / "public.sock"))
        unix.listen()
        refused(["--listen", "unix socket", "ListenStream"], "--listen", "systemd:public", inherited=unix)
        assert not accounts.socket.exists(), "it is refused before the internal listener opens"
    refused(["unix:PATH", "--internal-certificate"], "--listen-internal", "0.0.0.0:9000")
    refused(["localhost"], "--listen", "localhost:80", code=64)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused(["in use"], "--listen", f"127.0.0.1:{taken.getsockname()[1]}", code=73)
        with socket.create_server(("127.0.0.1", 0)) as kept:
            early = socket.create_connection(kept.getsockname())
            early.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            places = ["--listen-internal", "systemd:public"]
            places += ["--listen-internal", f"127.0.0.1:{taken.getsockname()[1]}"]
            refused(["in use"], *places, code=73, inherited=kept)
            early.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                raise AssertionError(f"no listener answers before the last one has its port: {early.recv(99)}")
