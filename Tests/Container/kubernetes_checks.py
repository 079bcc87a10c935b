"""The checks of the manifest for Kubernetes: its schema, and its pods as a kubelet would start them, with Podman.

A cluster is not needed, and is not tested: neither scheduling nor the volumes and secrets of a real one.
"""

import json
import os
import subprocess

import images
from checklist import adding_to
from deployment import CLIENT, ENDPOINTS, IMAGE
from expectations import ROOT, wait_for

CHECKS = []
check = adding_to(CHECKS)
MANIFEST = "deploy/kubernetes/refresh-worker.yaml"
# What deploy/kubernetes-tls adds: files that stand for themselves, and a patch of the StatefulSet.
TLS = "deploy/kubernetes-tls"
PYTHON = ROOT / ".build/python-container/bin"
NAMESPACE = "network-of-pods"
DATABASE = "database-of-pods"
PODS = ("refresh-worker-0", "refresh-worker-1")
# The names of the secret's files, as the comment of the manifest has them.
SECRET = ("key-ring", "database-url", "client-id", "services")


def documents(it, manifest=MANIFEST):
    """The documents of a manifest by kind."""
    script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"
    text = it.engine.call(str(PYTHON / "python"), "-c", script, input=(it.source / manifest).read_text())
    return {document["kind"]: document for document in json.loads(text)}


@check("each document is valid by the schema of Kubernetes", needed=True)
def schema(it):
    it.engine.call(str(PYTHON / "kubernetes-validate"), "--strict", str(it.source / MANIFEST))
    it.manifest = documents(it)
    assert set(it.manifest) == {"Service", "StatefulSet", "PodDisruptionBudget"}, "the manifest has these documents"
    it.pod = it.manifest["StatefulSet"]["spec"]["template"]["spec"]
    it.container = it.pod["containers"][0]


@check("two replicas, of which an eviction leaves one; the selectors fit the pods")
def replicas(it):
    stateful, budget = it.manifest["StatefulSet"]["spec"], it.manifest["PodDisruptionBudget"]["spec"]
    assert (stateful["replicas"], budget["minAvailable"]) == (2, 1), "one worker continues"
    labels = stateful["template"]["metadata"]["labels"]
    selectors = [stateful["selector"]["matchLabels"], budget["selector"]["matchLabels"],
                 it.manifest["Service"]["spec"]["selector"]]
    assert selectors == [labels] * 3, "the selectors choose these pods"
    assert stateful["serviceName"] == it.manifest["Service"]["metadata"]["name"], "the set names its service"


@check("the files for TLS are valid by the schema, and fit the workers and each other")
def tls(it):
    for name in ("service.yaml", "network.yaml"):
        it.engine.call(str(PYTHON / "kubernetes-validate"), "--strict", str(it.source / TLS / name))
    service = documents(it, f"{TLS}/service.yaml")["Service"]
    policy = documents(it, f"{TLS}/network.yaml")["NetworkPolicy"]["spec"]
    monitor = documents(it, f"{TLS}/monitoring.yaml")["ServiceMonitor"]["spec"]
    patch = documents(it, f"{TLS}/listener.yaml")["StatefulSet"]
    assert patch["metadata"]["name"] == it.manifest["StatefulSet"]["metadata"]["name"], "the patch names the set"
    pod = patch["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["name"] == it.container["name"], "the patch names the container"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    exposed = service["spec"]["ports"][0]
    assert ports[exposed["targetPort"]] == exposed["port"], "the service leads to the port"
    assert policy["ingress"][0]["ports"][0]["port"] in ports, "the policy opens the port"
    listeners = next(v["value"] for v in container["env"] if v["name"] == "REFRESH_WORKER_LISTEN_INTERNAL")
    probed = it.container["readinessProbe"]["exec"]["command"]
    assert listeners.split(",")[0] == "unix:" + probed[probed.index("--unix-socket") + 1], "the probes find the socket"
    assert listeners.split(",")[1].endswith(f":{exposed['port']}"), "the worker listens on the port"
    labels = it.manifest["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == policy["podSelector"]["matchLabels"] == labels, "both choose the workers"
    assert monitor["selector"]["matchLabels"] == service["metadata"]["labels"], "Prometheus finds the service"
    assert monitor["endpoints"][0]["port"] == exposed["name"], "Prometheus finds the port"
    assert service["metadata"]["labels"][monitor["jobLabel"]] == "refresh-worker", "the job has the name of the alerts"
    assert "labels" not in it.manifest["Service"]["metadata"], "Prometheus finds no other service"
    secret = pod["volumes"][0]["secret"]
    assert secret["defaultMode"] == 0o440, "the worker accepts the key's mode"
    assert monitor["endpoints"][0]["tlsConfig"]["ca"]["secret"]["name"] == secret["secretName"], "both use one secret"


@check("the line of the comment makes a key ring that the caller can read", needed=True)
def secret(it):
    it.make_programs()
    it.secret = it.engine.folder / "secret"
    it.secret.mkdir()
    it.documented(MANIFEST, 'docker run --rm --user "$(id -u)"', folder=it.secret)
    status = (it.secret / "key-ring").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (os.geteuid(), 0o600), "the key ring belongs to the caller"
    (it.secret / "database-password").write_text("not-so-secret\n")
    (it.secret / "database-password").chmod(0o444)
    (it.secret / "database-url").write_text("postgres://refresh_worker:not-so-secret@127.0.0.1/grants\n")
    (it.secret / "client-id").write_text(CLIENT + "\n")
    printed = it.engine.podman("run", "--rm", "--network", "none", IMAGE, "services", "credential", "backend", "--json")
    (it.secret / "services").write_text(json.dumps({"services": [json.loads(printed)["entry"]]}))


@check("the database starts", needed=True)
def database(it):
    it.open_namespace(NAMESPACE)
    it.engine.podman(
        "run", "--detach", "--name", DATABASE, "--network", f"container:{NAMESPACE}", "--env",
        "POSTGRES_USER=refresh_worker", "--env", "POSTGRES_DB=grants", "--env",
        "POSTGRES_PASSWORD_FILE=/run/secrets/database-password", "--volume", f"{it.secret}:/run/secrets:ro",
        images.DEBIAN_IMAGES["postgres"],
    )
    ready = ["exec", DATABASE, "pg_isready", "--host=127.0.0.1", "--username=refresh_worker", "--dbname=grants"]
    wait_for(lambda: "accepting" in it.engine.podman(*ready, expect=None), 60, "the database accepts connections")


def mounted_secret(it, pod):
    """The files of the secret, laid out as the kubelet does for `defaultMode` and `fsGroup`."""
    volume = next(volume for volume in it.pod["volumes"] if "secret" in volume)
    group = it.pod["securityContext"]["fsGroup"]
    folder = it.engine.folder / pod / "secret"
    data = folder / "..2026_01_01"
    data.mkdir(parents=True)
    for name in SECRET:
        (data / name).write_bytes((it.secret / name).read_bytes())
        (data / name).chmod(volume["secret"]["defaultMode"])
        (folder / name).symlink_to(f"..data/{name}")
        os.chown(data / name, 0, group)
    (folder / "..data").symlink_to(data.name)
    for path in (folder, data):
        os.chown(path, 0, group)
        path.chmod(0o3777 if path == folder else 0o2755)
    return volume["name"], folder


def empty_volume(it, pod, name, mode):
    """An empty volume that belongs to root and to the group `fsGroup`."""
    folder = it.engine.folder / pod / name
    folder.mkdir(parents=True)
    os.chown(folder, 0, it.pod["securityContext"]["fsGroup"])
    folder.chmod(mode)
    return name, folder


def start(it, pod):
    context, own = it.pod["securityContext"], it.container["securityContext"]
    claim = it.manifest["StatefulSet"]["spec"]["volumeClaimTemplates"][0]["metadata"]["name"]
    empty = next(volume["name"] for volume in it.pod["volumes"] if "emptyDir" in volume)
    sources = dict([
        mounted_secret(it, pod), empty_volume(it, pod, claim, mode=0o2775), empty_volume(it, pod, empty, mode=0o2777),
    ])
    words = ["run", "--detach", "--name", pod, "--hostname", pod, "--network", f"container:{NAMESPACE}",
             "--user", f"{context['runAsUser']}:{context['runAsGroup']}", "--group-add", str(context["fsGroup"]),
             "--no-healthcheck", "--memory", it.container["resources"]["limits"]["memory"].lower().removesuffix("i")]
    words += [f"--cap-drop={name}" for name in own["capabilities"]["drop"]]
    words += ["--read-only", "--read-only-tmpfs=false"] if own["readOnlyRootFilesystem"] else []
    words += [] if own["allowPrivilegeEscalation"] else ["--security-opt", "no-new-privileges"]
    for variable in it.container["env"]:
        words += ["--env", f"{variable['name']}={variable['value']}"]
    for name, value in ENDPOINTS.items():
        words += ["--env", f"{name}={value}"]
    for mount in it.container["volumeMounts"]:
        options = ":ro" if mount.get("readOnly") else ""
        words += ["--volume", f"{sources[mount['name']]}:{mount['mountPath']}{options}"]
    it.engine.podman(*words, IMAGE)


def probe(it, pod, kind):
    """`True` if a probe of the manifest passes in a pod."""
    done = subprocess.run(
        ["podman", "exec", pod, *it.container[kind]["exec"]["command"]], env=it.engine.environment,
        capture_output=True, timeout=60,
    )
    return done.returncode == 0


def wait_probe(it, pod, kind):
    wait_for(lambda: probe(it, pod, kind), 60, lambda: f"{kind} of {pod} passes: " + it.engine.logs(pod)[-1500:])


@check("both pods start with their settings, and all probes pass", needed=True)
def pods(it):
    for pod in PODS:
        start(it, pod)
    for pod in PODS:
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            wait_probe(it, pod, kind)
        assert it.status_of_process(pod, "Uid") == ["10001"] * 4, "the user is 10001"
    it.worker(PODS[0], "grants", "import", "-", input=it.create(20, "user"))
    it.wait_refreshing(PODS[1])
    it.worker(PODS[0], "doctor")


@check("each worker can write its volume for spill files")
def volumes(it):
    for pod in PODS:
        reserve = it.engine.folder / pod / "state" / "refresh-worker.reserve"
        wait_for(reserve.exists, 60, "the worker has reserved disk space")
        assert (reserve.stat().st_uid, reserve.stat().st_mode & 0o777) == (10001, 0o600), "only the worker reads it"


@check("the readiness probe fails while the database is away, the liveness probe does not")
def database_away(it):
    it.engine.podman("stop", "--time", "20", DATABASE)
    try:
        wait_for(lambda: not probe(it, PODS[0], "readinessProbe"), 30, "the worker is not ready")
        assert probe(it, PODS[0], "livenessProbe"), "the worker is not restarted"
    finally:
        it.engine.podman("start", DATABASE)
    for pod in PODS:
        wait_probe(it, pod, "readinessProbe")


@check("one worker is killed, the other refreshes every grant")
def killed(it):
    it.engine.podman("kill", PODS[0])
    it.wait_refreshing(PODS[1], seconds=120)


@check("a worker ends with 0 within the pod's grace period")
def stop(it):
    status, seconds = it.stop(PODS[1], it.pod["terminationGracePeriodSeconds"])
    assert status == 0, "a stop is a success"
    it.engine.remove(*PODS, DATABASE)
    it.close_namespace(NAMESPACE)
    return f"stopped in {seconds:.1f} s"
