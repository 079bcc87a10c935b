"""The checks of the compose file: its steps word for word, and its services with images made of Debian packages."""

import json
import re
import urllib.parse

import images
from checklist import adding_to
from deployment import ENDPOINTS, GRACE, LIFETIME
from expectations import wait_for

CHECKS = []
check = adding_to(CHECKS)
FILE = "deploy/container/compose.yaml"
PROJECT = "container"
WORKER, DATABASE, NETWORK, PROMETHEUS = (
    f"{PROJECT}_{service}_1" for service in ("worker", "database", "network", "prometheus")
)
# The sandbox instead of Google, and images without a registry.
OVERRIDE = """
services:
  worker:
    build:
      args:
        BUILDER: {builder}
        BASE: {base}
    environment:
{environment}
"""
LINES = [
    "mkdir -m 0700 secrets",
    "docker compose build worker",
    "openssl rand",
    "echo \"postgres://",
    "echo 1234-abc.apps.googleusercontent.com",
    "docker run --rm --user root",
]


def folder(it):
    return it.source / "deploy/container"


def documented(it, line, **more):
    return it.documented(FILE, line, folder=folder(it), **more)


def query(it, path):
    """A response of Prometheus, asked in the network of the services."""
    return json.loads(it.curl(f"http://127.0.0.1:9090/api/v1/{path}"))["data"]


@check("the steps of compose.yaml build the image and make the secrets", needed=True)
def steps(it):
    environment = "\n".join(f"      {name}: {value}" for name, value in ENDPOINTS.items())
    override = it.engine.folder / "override.yaml"
    override.write_text(OVERRIDE.format(builder=images.BUILDER, base=images.BASE, environment=environment))
    it.make_programs(folder(it) / "compose.yaml", override)
    for line in LINES:
        documented(it, line, timeout=3000)
    printed = documented(it, "docker run --rm refresh-worker services credential backend")
    it.credential = re.search(r"^credential +(\S+)$", printed, re.MULTILINE)[1]
    entry = re.search(r"^entry +(.+)$", printed, re.MULTILINE)[1]
    it.engine.environment |= {"EDITOR": "write-services", "ENTRY": entry}
    documented(it, "$EDITOR secrets/services")
    documented(it, "sudo chown 0:10001")
    documented(it, "sudo chmod 0444")
    modes = {path.name: f"{path.stat().st_gid} {path.stat().st_mode & 0o777:o}"
             for path in (folder(it) / "secrets").iterdir()}
    assert modes == {name: "10001 440" for name in ("key-ring", "database-url", "client-id", "services")} | {
        "database-password": "10001 444"
    }, "each secret has its mode"


@check("the services start: the worker, the database and Prometheus", needed=True)
def up(it):
    documented(it, "docker compose up --detach", timeout=300)
    it.join(NETWORK)
    it.wait_healthy(DATABASE)
    it.wait_healthy(WORKER)
    assert it.status_of_process(WORKER, "Uid") == ["10001"] * 4, "the user is 10001"


@check("commands run in the worker's container; the worker refreshes every grant", needed=True)
def commands(it):
    it.documented(FILE, "docker compose exec -T worker", folder=it.grants_file(20).parent)
    documented(it, "docker compose exec worker refresh-worker doctor")
    it.wait_refreshing(WORKER)


@check("a service in the network of the containers gets a token")
def vend(it):
    user = next(iter(it.successes(WORKER)))
    answer = json.loads(it.curl("--fail-with-body", "--header", f"Authorization: Bearer {it.credential}",
                                f"http://127.0.0.1:9464/v1/grants/{user}/token?min_ttl=0"))
    assert answer["expires_in"] <= LIFETIME, "the token is the one of the sandbox"


@check("Prometheus scrapes the worker, and has the alerts")
def prometheus(it):
    def values():
        expression = urllib.parse.quote('up{job="refresh-worker"}')
        return [sample["value"][1] for sample in query(it, f"query?query={expression}")["result"]]

    wait_for(lambda: values() == ["1"], 60, "the worker is scraped", pause=1)
    rules = [rule["name"] for group in query(it, "rules")["groups"] for rule in group["rules"]]
    text = (it.source / "deploy/prometheus/refresh-worker.rules.yml").read_text()
    assert len(rules) == text.count("- alert: "), "every alert is loaded"
    port = it.engine.podman("port", NETWORK).strip()
    assert port == "9090/tcp -> 127.0.0.1:9090", "only this machine reaches Prometheus"
    it.engine.call("curl", "--silent", "--fail", "--max-time", "10", "http://127.0.0.1:9090/-/ready")


@check("after a restart of the database the worker goes on")
def database_restarts(it):
    it.engine.podman("restart", "--time", "20", DATABASE)
    it.wait_healthy(DATABASE)
    it.wait_refreshing(WORKER, seconds=90)


@check("a second build does not get the secrets")
def no_secret_in_build(it):
    stage = "localhost/first-stage"
    it.engine.podman("build", "--file", str(folder(it) / "Containerfile"), "--target", "build", "--tag", stage,
                     *it.build_options(), str(it.source), timeout=3000)
    found = it.engine.podman("run", "--rm", "--network", "none", stage, "ls", "/source/deploy/container")
    assert "compose.yaml" in found and "secrets" not in found, "the sources are there without the secrets"


@check("the worker ends with 0 within its grace period; the volumes keep the grants")
def down(it):
    status, seconds = it.stop(WORKER, GRACE)
    assert status == 0, "a stop is a success"
    it.engine.remove(f"sandbox-of-{NETWORK}")
    it.engine.call("docker", "compose", "down", cwd=folder(it), timeout=200)
    volumes = it.engine.podman("volume", "ls", "--format", "{{.Name}}").split()
    assert {f"{PROJECT}_{name}" for name in ("state", "database", "prometheus")} <= set(volumes), "volumes stay"
    return f"stopped in {seconds:.1f} s"
