"""The worker in containers that share a network namespace with the sandbox, which plays Google there."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import time

import images
from expectations import ROOT, wait_for

IMAGE = "refresh-worker"
COMPOSE = ROOT / ".build/python-container/bin/podman-compose"
CLIENT = "1234-abc.apps.googleusercontent.com"
SANDBOX = "http://127.0.0.1:8099"
LIFETIME = 12
# The grace period of a stop in the documented lines and files.
GRACE = 40
SWIFT = os.environ.get("SWIFT", "swift").split()
# The endpoints of Google, as the sandbox has them. Only loopback may be without TLS.
ENDPOINTS = {
    "REFRESH_WORKER_TOKEN_ENDPOINT": SANDBOX + "/token",
    "REFRESH_WORKER_USERINFO_ENDPOINT": SANDBOX + "/v1/userinfo",
    "REFRESH_WORKER_TOKENINFO_ENDPOINT": SANDBOX + "/tokeninfo",
    "REFRESH_WORKER_REVOCATION_ENDPOINT": SANDBOX + "/revoke",
    "REFRESH_WORKER_SUMMARY_INTERVAL": "1",
}
# `docker` and `sudo`, as the documented lines call them. What a line leaves to the defaults of its user is added: the
# images without a registry, the sandbox instead of Google, and its network.
DOCKER = """#!/bin/sh
case $1 in
build) shift; exec podman build {build} "$@" ;;
compose) shift; exec {compose} "$@" ;;
run)
    shift
    case " $* " in *" --detach "*) exec podman run {run} "$@" ;; *) exec podman run --network none "$@" ;; esac
    ;;
*) exec podman "$@" ;;
esac
"""


class Deployment:
    def __init__(self, engine, toolchain):
        self.engine = engine
        self.toolchain = toolchain
        # The committed state, like a clone of the repository.
        self.source = engine.folder / "source"
        self.sandbox_program = ROOT / ".build/static/release/google-sandbox"
        self.namespace = None

    # MARK: Preparation

    def prepare(self):
        """Makes the sources, and the images without a registry that Containerfile names."""
        run_here("git", "-c", "safe.directory=*", "clone", "--quiet", str(ROOT), str(self.source))
        images.make_base(self.engine)
        images.make_builder(self.engine)

    def prepare_services(self):
        """Makes the sandbox, and the images that compose.yaml and the manifest name."""
        run_here(*SWIFT, "build", "--configuration", "release", "--static-swift-stdlib", "--product", "google-sandbox",
                 "--scratch-path", ".build/static")
        images.make_debian_images(self.engine)

    def build_options(self):
        return [
            "--build-arg", f"BUILDER={images.BUILDER}", "--build-arg", f"BASE={images.BASE}", "--network", "host",
            "--volume", f"{self.toolchain}:{images.TOOLCHAIN}:ro",
        ]

    def make_programs(self, *compose_files):
        """Puts `docker`, `sudo` and an editor on the path of the documented lines."""
        build = " ".join(self.build_options())
        # Without a pod, because its containers could not share the network of one of them.
        compose = [str(COMPOSE), "--in-pod=false", f"--podman-build-args={build}"]
        compose += [f"--file={file}" for file in compose_files]
        folder = self.engine.folder / "programs"
        folder.mkdir(exist_ok=True)
        run = ["--network", f"container:{self.namespace}"]
        run += [word for name, value in ENDPOINTS.items() for word in ("--env", f"{name}={value}")]
        for name, text in {
            "docker": DOCKER.format(build=build, run=" ".join(run), compose=shlex.join(compose)),
            "sudo": '#!/bin/sh\nexec "$@"\n',
            "write-services": '#!/bin/sh\nprintf \'{"services": [%s]}\\n\' "$ENTRY" >"$1"\n',
        }.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self.engine.environment["PATH"] = f"{folder}:{os.environ['PATH']}"

    # MARK: Namespaces

    def join(self, namespace):
        """Uses the network of a container for the sandbox and for workers from now on."""
        self.namespace = namespace
        self.engine.podman(
            "run", "--detach", "--name", f"sandbox-of-{namespace}", "--network", f"container:{namespace}",
            "--volume", f"{self.sandbox_program}:/usr/local/bin/google-sandbox:ro", "--no-healthcheck",
            "--entrypoint", "/usr/local/bin/google-sandbox", IMAGE, "--quiet",
        )
        wait_for(lambda: '"requests' in self.curl(f"{SANDBOX}/control/stats", expect=None), 20, "the sandbox answers")
        self.control("settings", lifetime=LIFETIME, clients=[CLIENT])

    def open_namespace(self, name):
        """Starts a container that has only loopback, with the sandbox in it."""
        self.engine.podman("run", "--detach", "--name", name, "--network", "none", images.DEBIAN_IMAGES["pause"])
        self.join(name)

    def close_namespace(self, name):
        self.engine.remove(f"sandbox-of-{name}", name)

    # MARK: The sandbox

    def curl(self, *words, **more):
        """Calls curl in the network of the workers."""
        return self.engine.podman("exec", f"sandbox-of-{self.namespace}", "curl", "--silent", "--max-time", "10",
                                  *words, **more)

    def control(self, path, **body):
        return json.loads(self.curl("--fail-with-body", f"{SANDBOX}/control/{path}",
                                    *(["--json", json.dumps(body)] if body else [])))

    def create(self, count, prefix):
        """Grants at the sandbox, as the lines of an import file."""
        names = ["access_token", "refresh_token", "scope", "client_id"]
        lines = [
            {"user_id": grant["email"], "google_email": grant["email"], "google_user_id": grant["sub"],
             "expires_at": time.strftime("%Y-%m-%dT%H:%M:%S.000000", time.gmtime(grant["expires_at"])),
             **{name: grant[name] for name in names}}
            for grant in self.control("grants", count=count, prefix=prefix)
        ]
        return "".join(json.dumps(line) + "\n" for line in lines)

    def grants_file(self, count):
        """New grants in a file grants.jsonl, in a folder that no image is built from."""
        file = self.engine.folder / "import" / "grants.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text(self.create(count, "user"))
        return file

    # MARK: Documented lines

    def line(self, path, line):
        """The line of a file with a text, exactly as it is written there, also where it continues after a backslash."""
        text = (self.source / path).read_text().replace("\n# ", "\n")
        lines = text.replace("\\\n", " ").splitlines()
        found = [" ".join(other.split()) for other in lines if other.startswith("    ") and line in other]
        assert len(found) == 1, f"{path} has exactly one line with `{line}`"
        return found[0]

    def documented(self, path, line, folder=None, **more):
        """Runs a line of a file."""
        return self.engine.call("/bin/sh", "-c", self.line(path, line), cwd=folder or self.source, **more)

    # MARK: A worker

    def worker(self, name, *words, **more):
        """Runs a command in the container of a worker."""
        return self.engine.podman("exec", *(["--interactive"] if "input" in more else []), name, "refresh-worker",
                                  *words, **more)

    def successes(self, name):
        """The time of each grant's last refresh."""
        lines = self.worker(name, "grants", "list", "--json").splitlines()
        return {grant["user_id"]: grant["last_success_at"] for grant in map(json.loads, lines)}

    def wait_refreshing(self, name, seconds=60):
        """Waits until every grant was refreshed after now."""
        before = self.successes(name)
        assert before, "grants are stored"
        wait_for(
            lambda: all(value != before[user] for user, value in self.successes(name).items()), seconds,
            lambda: "every grant is refreshed: " + self.engine.logs(name)[-1500:], pause=0.5,
        )

    def wait_healthy(self, name, seconds=60):
        wait_for(lambda: self.engine.is_healthy(name), seconds,
                 lambda: f"{name} is healthy: " + self.engine.logs(name)[-1500:], pause=0.5)

    def stop(self, name, grace):
        """Stops a container within its grace period, and returns its exit status and the time it took."""
        began = time.monotonic()
        self.engine.podman("stop", "--time", str(grace), name)
        return int(self.engine.inspect(name, ".State.ExitCode")), time.monotonic() - began

    def status_of_process(self, name, field):
        """A line of /proc/PID/status of the worker in a container."""
        script = (
            'for task in /proc/[0-9]*; do [ "$(cat $task/comm)" = refresh-worker ] && '
            f"grep ^{field}: $task/status; done"
        )
        lines = self.engine.podman("exec", name, "/bin/sh", "-c", script, expect=None).splitlines()
        assert lines, "the worker runs in the container"
        return lines[0].split(":")[1].split()


def run_here(*words):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"`{' '.join(words)}` exits with 0; it wrote: {done.stderr[-1500:]}"


def toolchain_of_this_machine():
    swift = shutil.which(SWIFT[0])
    assert swift, "swift is on the PATH"
    return pathlib.Path(os.path.realpath(swift)).parents[1]
