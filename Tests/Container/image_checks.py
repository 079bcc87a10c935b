"""The checks of the image with a worker on SQLite, in the order in which they run."""

import contextlib
import json

from checklist import adding_to
from deployment import CLIENT, GRACE, IMAGE
from expectations import wait_for

CHECKS = []
check = adding_to(CHECKS)
NAME = "refresh-worker"
NAMESPACE = "network-of-image"
MANUAL = "docs/operate.md"
# The longest stop by docs/operate.md: the stop deadline and 8 seconds.
LONGEST_STOP = 28


def start(it, *options, name=NAME):
    it.engine.podman("run", "--detach", "--name", name, "--network", f"container:{it.namespace}", *options, IMAGE)


@contextlib.contextmanager
def another(it, *options):
    """Another worker, which is removed at the end."""
    name = "another-worker"
    try:
        start(it, *options, name=name)
        yield name
    finally:
        it.engine.remove(name)


@check("the line of docs/operate.md builds the image from the committed sources", needed=True)
def build(it):
    it.make_programs()
    it.documented(MANUAL, "docker build", timeout=3000)
    commit = it.engine.call("git", "-C", str(it.source), "rev-parse", "--short=12", "HEAD").strip()
    version = it.engine.podman("run", "--rm", "--network", "none", IMAGE, "--version")
    assert commit in version, "the program names the commit of the sources"
    return f"{int(it.engine.inspect(IMAGE, '.Size', 'image')) / 1e6:.0f} MB"


@check("the image names its user by number, and has a health check and a stop signal")
def settings(it):
    image = json.loads(it.engine.podman("image", "inspect", IMAGE))[0]
    assert image["User"] == "10001:10001", "the user is not root"
    assert image["Healthcheck"]["Test"][:2] == ["CMD", "curl"], "the image has the health check"
    assert image["Config"]["StopSignal"] == "SIGTERM", "the stop signal is the one that the worker handles"
    # The sources and the toolchain stay in the first stage; only an empty folder shows where it was mounted.
    script = "ls -d /source /opt/swift/usr/bin 2>/dev/null || true"
    left = it.engine.podman("run", "--rm", "--network", "none", "--entrypoint", "/bin/sh", IMAGE, "-c", script)
    assert not left, "the image has only the package"


@check("the lines of docs/operate.md make a key ring and start a worker that refreshes", needed=True)
def run(it):
    it.open_namespace(NAMESPACE)
    it.make_programs()
    it.documented(MANUAL, "docker run --rm --volume refresh-worker-keys")
    it.documented(MANUAL, "docker run --detach --name refresh-worker")
    it.wait_healthy(NAME)
    it.documented(MANUAL, "docker exec --interactive refresh-worker", folder=it.grants_file(20).parent)
    assert len(it.successes(NAME)) == 20, "every grant is imported"
    it.wait_refreshing(NAME)
    it.documented(MANUAL, "docker exec refresh-worker refresh-worker status")
    it.worker(NAME, "doctor")


@check("it runs without root's rights, on a root that cannot be written")
def rights(it):
    assert it.status_of_process(NAME, "Uid") == ["10001"] * 4, "the user is 10001"
    assert set(it.status_of_process(NAME, "CapEff")[0]) == {"0"}, "no capability is left"
    assert it.status_of_process(NAME, "NoNewPrivs") == ["1"], "it cannot gain rights"
    script = "touch /etc/here /usr/here 2>/dev/null; ls -d /etc/here /usr/here 2>/dev/null || true"
    assert not it.engine.podman("exec", NAME, "/bin/sh", "-c", script), "the root cannot be written"


@check("the health check fails while the worker cannot answer, and passes again")
def health(it):
    pid = it.status_of_process(NAME, "Pid")[0]
    it.engine.podman("exec", NAME, "/bin/sh", "-c", f"kill -STOP {pid}")
    try:
        assert not it.engine.is_healthy(NAME), "a stopped process is not healthy"
    finally:
        it.engine.podman("exec", NAME, "/bin/sh", "-c", f"kill -CONT {pid}")
    it.wait_healthy(NAME)


@check("SIGTERM ends it with 0 within the time that docs/operate.md names, and it continues after a start")
def stop(it):
    status, seconds = it.stop(NAME, GRACE)
    assert status == 0, "a stop is a success"
    assert seconds < LONGEST_STOP, "a stop takes at most the time that is documented"
    it.engine.podman("start", NAME)
    it.wait_healthy(NAME)
    assert len(it.successes(NAME)) == 20, "every grant is kept"
    it.wait_refreshing(NAME)
    return f"stopped in {seconds:.1f} s"


@check("a worker that waits for its database ends at the first SIGTERM")
def stop_while_waiting(it):
    with another(it, "--env", "REFRESH_WORKER_DATABASE=postgres://worker@127.0.0.1:1/none", "--env",
                 f"GOOGLE_CLIENT_ID={CLIENT}", "--volume", "refresh-worker-keys:/etc/refresh-worker") as name:
        wait_for(lambda: "waiting for the database" in it.engine.logs(name), 30,
                 lambda: "it waits for the database: " + it.engine.logs(name))
        _, seconds = it.stop(name, GRACE)
        assert seconds < 5, "it does not use up its grace period"
        return f"stopped in {seconds:.1f} s"


@check("a container that mounts the volume of the socket reaches the internal listener")
def socket(it):
    it.engine.podman(
        "run", "--rm", "--network", "none", "--volumes-from", NAME, "--entrypoint", "/usr/bin/curl", IMAGE, "--silent",
        "--fail", "--max-time", "10", "--unix-socket", "/run/refresh-worker/internal.sock", "http://worker/readyz",
    )


@check("a worker without a key ring ends, and says how to make one")
def no_key_ring(it):
    it.engine.remove(NAME)
    with another(it) as name:
        status = int(it.engine.podman("wait", name))
        assert (status, "keys generate" in it.engine.logs(name)) == (78, True), "the configuration is wrong"
    it.close_namespace(NAMESPACE)
