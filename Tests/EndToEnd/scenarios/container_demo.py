"""The demo of deploy/container/demo.yaml without containers: its script and its settings, on ports of this machine."""

import json
import os
import re
import subprocess

import yaml
from accounts import Listener
from expectations import wait_for
from harness import BINARIES, ROOT, WORKER
from ports import free_port

STORE = "sqlite"
FOLDER = ROOT / "deploy" / "container"


def scenario(fixture):
    demo = yaml.safe_load((FOLDER / "demo.yaml").read_text())
    connected(demo["services"])
    port, folder = free_port(), fixture.folder / "volume"
    folder.mkdir(mode=0o700)
    (folder / "left-over").write_text("of an earlier start")
    replaced = {
        "http://127.0.0.1:8099": fixture.sandbox.url,
        "127.0.0.1:9464": f"127.0.0.1:{port}",
        "/var/lib/refresh-worker": str(folder),
    }
    settings = dict(demo["services"]["worker"]["environment"])
    for old, new in replaced.items():
        assert any(old in value for value in settings.values()), f"demo.yaml contains {old}"
        settings = {name: value.replace(old, new) for name, value in settings.items()}
    environment = {**os.environ, **settings, "PATH": f"{BINARIES}:{os.environ['PATH']}"}

    made = subprocess.run([FOLDER / "demo-grants"], env=environment, capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, f"demo-grants succeeds; it wrote: {made.stderr}"
    assert not (folder / "left-over").exists(), "each start begins anew"
    credential = re.search(r"rwc_\S+", made.stdout)[0]
    with open(fixture.folder / "worker.log", "w") as log:
        worker = subprocess.Popen([WORKER], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        page = Listener(port)
        wait_for(lambda: answers(page), 60, "the worker listens")
        answer = page.get("/")
        assert answer.status == 200 and b"<html" in answer.body, "the status page opens without a credential"
        page.get("/users?user=bela", credential).expect(200)
        wait_for(lambda: refreshed(page) >= 8, 60, "all grants are refreshed", pause=0.5)
        listed = subprocess.run(
            [WORKER, "grants", "list", "--json"], env=environment, capture_output=True, text=True, timeout=60,
        )
        users = [json.loads(line)["user_id"] for line in listed.stdout.splitlines()]
        assert sorted(users) == ["ada", "bela", "cleo", "dora", "emil", "fred", "gina", "hugo"], "the grants have names"
    finally:
        worker.terminate()
        status = worker.wait(timeout=40)
    assert status == 0, "the worker stops in order"
    return ""


def connected(services):
    """What an engine would find out only at the start."""
    containerfile = (FOLDER / "Containerfile").read_text()
    stages = re.findall(r"^FROM \S+ AS (\S+)$", containerfile, re.M)
    for name, service in services.items():
        if "build" in service:
            assert service["build"]["target"] in stages, f"the target of {name} is a stage of the Containerfile"
        else:
            assert service["pull_policy"] == "never", f"{name} uses the image that is built"
    assert {service["image"] for service in services.values()} == {"refresh-worker-demo"}, "one image serves all"
    for name, service in services.items():
        if name != "sandbox":
            assert service["network_mode"] == "service:sandbox", f"{name} reaches the loopback of the others"
            assert "ports" not in service, f"{name} has no network of its own"
        assert set(service.get("depends_on", {})) <= set(services), f"{name} waits for services that exist"
        words = [word for word in service["entrypoint"] if re.fullmatch(r"[a-z][a-z-]+", word)]
        for program in words:
            assert re.search(rf"(?:/|\s){program}\b", containerfile), f"the image has {program}"
    for published in services["sandbox"]["ports"]:
        assert published.startswith("127.0.0.1:"), f"only this machine reaches {published}"
    removed = re.findall(r"rm -rf ((?:\S+ ?)+)", containerfile)
    assert any("/etc/refresh-worker/refresh-worker.conf" in paths for paths in removed), (
        "the image has no configuration file, which commands would take for that of an installation"
    )
    assert containerfile.rstrip().endswith("FROM worker"), "without a target, the image is the worker"


def answers(page):
    try:
        return page.get("/healthz").status == 200
    except OSError:
        return False


def refreshed(page):
    """The number of successful refreshes that the metrics count."""
    text = page.get("/metrics").expect(200).body.decode()
    return sum(map(float, re.findall(r'^refresh_worker_refreshes_total\{.*"refreshed".*\} (\S+)$', text, re.M)))
