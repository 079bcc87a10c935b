"""The checks of the worker under a booted systemd, in the order in which they run."""

import hashlib
import json
import re
import resource
import time

from checklist import adding_to
from deployment import CLIENT, CONFIGURATION, METRICS, ONCE, SANDBOX, SERVICE
from expectations import wait_for

CHECKS = []
check = adding_to(CHECKS)
KEYS = "/etc/refresh-worker/keys"


# MARK: The steps of docs/operate.md

@check("sysusers and tmpfiles make the user and the folders", needed=True)
def users_and_folders(it):
    it.documented("systemd-sysusers && systemd-tmpfiles --create")
    it.documented("systemctl daemon-reload")
    modes = it.modes("/etc/refresh-worker", "/var/lib/refresh-worker", "/var/log/refresh-worker")
    assert modes == ["refresh-worker 750", "refresh-worker 700", "refresh-worker 750"], (
        "each folder has its owner and mode"
    )


@check("the configuration is kept by a second make install", needed=True)
def configuration(it):
    it.configure()
    it.install()
    assert SANDBOX in it.machine.read(CONFIGURATION), "a second installation keeps the configuration"
    it.start_sandbox()


@check("keys generate, as in docs/operate.md: mode 0600, owned by the service", needed=True)
def keys_generate(it):
    it.documented("refresh-worker keys generate")
    assert it.modes(KEYS) == ["refresh-worker 600"], "only the service can read the key ring"


@check("doctor finds no fault before the first start")
def doctor(it):
    it.documented("refresh-worker doctor")


@check("grants import, as in docs/operate.md, from a file that only root can read", needed=True)
def grants_import(it):
    it.machine.write("/root/grants.jsonl", it.create(20, "user"), mode=0o600)
    it.documented("refresh-worker grants import - <grants.jsonl")
    assert len(it.grants()) == 20, "every grant is imported"


@check("the service becomes ready with all of its hardening", needed=True)
def start(it):
    it.documented("systemctl enable --now refresh-worker")
    it.wait_active()
    # Apart from systemd's own lines there is only the worker's first line.
    output = [line for line in it.journal().splitlines() if "Keeps stored Google" not in line]
    assert len(output) == 1 and output[0].startswith("started "), (
        "the journal has the worker's first line and no other"
    )


@check("it refreshes every grant")
def refreshes(it):
    it.wait_refreshing()
    assert it.events("refresh", outcome="refreshed"), "the metrics log reports refreshes"


@check("no call of it is refused by the filter of system calls, and it does not map code that it wrote")
def filter_of_calls(it):
    # Here a refused call kills the worker instead of failing with an error that may go unnoticed. Only the nice value
    # of a thread may be refused, because Dispatch continues without it.
    it.drop_in(SERVICE, "[Service]", "SystemCallErrorNumber=kill", "SystemCallFilter=setpriority")
    it.call("systemctl", "restart", SERVICE, expect=None)
    it.wait_active()
    it.wait_refreshing()
    it.call("systemctl", "reload", SERVICE)
    it.call("systemctl", "stop", SERVICE)
    assert it.property("Result") == "success", "no call of the service is refused"
    it.drop_in(SERVICE)
    it.call("systemctl", "start", SERVICE)


@check("the kernel enforces: no privileges, no core, a filter, 65536 files, closed to its user's debuggers")
def process(it):
    status = dict(line.split(":\t", 1) for line in it.machine.read(f"/proc/{it.pid()}/status").splitlines())
    for name, value in {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16, "CapBnd": "0" * 16}.items():
        assert status[name].strip() == value, f"{name} is {value}"
    limits = it.machine.read(f"/proc/{it.pid()}/limits")
    # A machine in a container gets at most the limit of its host.
    files = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    assert re.search(rf"Max open files +{files} +{files} ", limits), (
        f"the limit of open files holds; the limits are:\n{limits}"
    )
    assert re.search(r"Max core file size +0 +0", limits), f"the limit of core files is zero; the limits are:\n{limits}"
    # Root owns the /proc files of a process that may not be dumped.
    assert it.modes(f"/proc/{it.pid()}/environ")[0].startswith("root "), "the process is closed to its user's debuggers"
    assert "rwx" not in it.machine.read(f"/proc/{it.pid()}/maps"), "no memory is writable and executable"


@check("systemd-analyze finds an exposure of 1.5 or lower")
def exposure(it):
    report = it.call("systemd-analyze", "security", "--no-pager", "--threshold=15", SERVICE)
    return re.search(r"exposure level[^:]*: ([0-9.]+)", report)[1]


@check("other users cannot read database, folders and logs")
def modes(it):
    files = it.shell("stat --format='%n %U %a' /var/lib/refresh-worker /var/lib/refresh-worker/grants.sqlite*"
                     " /var/log/refresh-worker /var/log/refresh-worker/*").splitlines()
    for line in files:
        name, user, mode = line.split()
        allowed = {"600", "700"} if name.startswith("/var/lib") else {"640", "750"}
        assert user == "refresh-worker" and mode in allowed, f"only the service can read: {line}"
    return f"{len(files)} of them"


@check("systemctl status shows the number of connected grants")
def status_line(it):
    status = wait_for(lambda: re.search(r'Status: "20 of 20 grants connected.*"',
                                      it.call("systemctl", "status", "--no-pager", SERVICE, expect=None)), 20,
                    lambda: f"the status shows every grant, not {it.property('StatusText')!r}")
    return status[0]


@check("the other commands of docs/operate.md work while the service runs")
def commands(it):
    it.documented("refresh-worker backup --archive /var/lib/refresh-worker/backup.tar")
    assert it.modes("/var/lib/refresh-worker/backup.tar") == ["refresh-worker 600"], (
        "only the service can read the backup"
    )
    user = min(it.grants())
    for words in (["status"], ["grants", "list"], ["grants", "show", user], ["token", user, "--min-ttl", "3"],
                  ["keys", "list"], ["doctor"], ["grants", "export", "--plaintext"]):
        output = it.as_service(*words, "--config", CONFIGURATION)
        assert output.strip(), f"`{' '.join(words)}` prints something"


@check("keys rotate, while the service runs")
def rotation(it):
    old = it.machine.read(KEYS).split("\n")
    it.as_service("keys", "rotate", "--config", CONFIGURATION, timeout=300)
    assert it.machine.read(KEYS).split("\n") != old, "the rotation changes the ring"
    assert it.modes(KEYS) == ["refresh-worker 600"], "only the service can read the ring"
    it.wait_refreshing()


# MARK: Signals

@check("reload: RELOADING, then READY, the new settings hold, the process is the same")
def reload(it):
    pid, cursor = it.pid(), it.cursor()
    it.call("systemctl", "log-level", "debug")
    it.configure(REFRESH_WORKER_LOG_LEVEL="info")
    it.call("systemctl", "reload", SERVICE)
    wait_for(lambda: "reloaded" in it.journal(since=cursor), 20, "the worker says so")
    it.wait_active()
    it.call("systemctl", "log-level", "info")
    journal = it.call("journalctl", "--no-pager", "--output=cat", f"--after-cursor={cursor}", "_PID=1")
    status = [word for word in re.findall(r"Got notification message.*\((.*)\)", journal)]
    order = " ".join(status)
    assert re.search(r"RELOADING=1.*MONOTONIC_USEC=\d+.*READY=1", order), (
        f"systemd is notified of RELOADING, then of READY: {order[-400:]}"
    )
    assert it.pid() == pid, "the process is the same"
    it.wait_refreshing()


@check("a reload with a mistake in the configuration changes nothing")
def bad_reload(it):
    cursor = it.cursor()
    it.configure(REFRESH_WORKER_MAX_RATES="1")
    it.call("systemctl", "reload", SERVICE)
    wait_for(lambda: "not reloaded" in it.journal(since=cursor), 20, "the worker says so")
    it.configure()
    it.call("systemctl", "reload", SERVICE)
    it.wait_refreshing()


@check("logrotate: the old file is renamed, the worker continues in a new one, no line is lost")
def logrotate(it):
    cursor = it.cursor()
    before = it.call("stat", "--format=%i", METRICS)
    it.call("logrotate", "--force", "/etc/logrotate.d/refresh-worker")
    wait_for(lambda: "reloaded" in it.journal(since=cursor), 20, "the worker has reloaded")
    wait_for(lambda: it.machine.run("test", "-s", METRICS).returncode == 0, 20, "there is a new file")
    assert it.call("stat", "--format=%i", METRICS) != before, "the log has a new file"
    assert it.call("stat", "--format=%i", METRICS + ".1") == before, "the old file is renamed"
    assert it.modes(METRICS) == ["refresh-worker 640"], "the log has its owner and mode"
    for line in (it.machine.read(METRICS + ".1") + it.machine.read(METRICS)).splitlines():
        json.loads(line)
    summaries = wait_for(lambda: it.events("summary"), 20, "summaries continue")
    assert summaries[-1]["dropped_lines"] == 0, "no line is dropped"
    it.wait_refreshing()


@check("stop: exit 0 within the deadline")
def stop(it):
    began = time.monotonic()
    it.call("systemctl", "stop", SERVICE)
    took = time.monotonic() - began
    assert took < 40, "the stop ends within the deadline (seconds)"
    assert it.property("Result") == "success" and it.property("ExecMainStatus") == "0", "the service ends with 0"
    assert it.events("stopped"), "the metrics log reports the stop"
    return f"{took:.1f} s"


@check("stop while Google hangs: exit 0 within the deadline")
def stop_hanging(it):
    it.control("settings", outage="hang")
    it.call("systemctl", "start", SERVICE)
    wait_for(lambda: it.events("summary") and it.events("summary")[-1]["in_flight"] > 0, 40, "requests are in flight")
    began = time.monotonic()
    it.call("systemctl", "stop", SERVICE)
    took = time.monotonic() - began
    assert took < 40 and it.property("Result") == "success", "the stop ends within the deadline (seconds)"
    it.control("settings", outage="none")
    it.call("systemctl", "start", SERVICE)
    it.wait_refreshing(90)
    return f"{took:.1f} s"


@check("watchdog: a worker that hangs is killed with SIGABRT and restarted")
def watchdog(it):
    it.drop_in(SERVICE, "[Service]", "WatchdogSec=4s", "RestartSec=1s")
    it.call("systemctl", "restart", SERVICE)
    it.wait_active()
    wait_for(lambda: it.property("WatchdogTimestampMonotonic") != "0", 10, "it is fed")
    # Waits longer than the watchdog's limit: a working worker stays alive.
    pid, cursor = it.pid(), it.cursor()
    it.wait_refreshing()
    assert it.pid() == pid and it.property("NRestarts") == "0", "the watchdog lets a working worker live"
    it.shell(f"kill -STOP {pid}")
    wait_for(lambda: it.property("NRestarts") == "1" and it.property("SubState") == "running", 40,
             lambda: f"the watchdog restarts the worker: {it.journal(since=cursor)[-600:]}")
    output = it.journal(since=cursor)
    assert "Watchdog timeout" in output and re.search(r"status=6/ABRT", output), (
        f"the watchdog ends the worker with SIGABRT: {output[-600:]}"
    )
    assert "dumped core" not in output and "code=dumped" not in output, f"the worker leaves no core: {output[-600:]}"
    it.wait_refreshing()
    it.drop_in(SERVICE)
    it.call("systemctl", "restart", SERVICE)


@check("kill -9: it is restarted")
def killed(it):
    before = it.pid()
    it.shell(f"kill -KILL {before}")
    wait_for(lambda: it.pid() not in ("0", before) and it.property("SubState") == "running", 30, "it is back")
    it.wait_refreshing(90)


@check("a broken configuration: exit 78, an error in the journal, and no restart")
def broken_configuration(it):
    cursor = it.cursor()
    it.configure(REFRESH_WORKER_MAX_RATES="1")
    it.call("systemctl", "restart", SERVICE, expect=1)
    # With a restart to come, its state would be "activating".
    properties = [it.property(name) for name in ("ActiveState", "ExecMainStatus", "NRestarts")]
    assert properties == ["failed", "78", "0"], "the service fails with 78 and is not restarted"
    output = it.journal(since=cursor)
    assert "REFRESH_WORKER_MAX_RATES" in output and "REFRESH_WORKER_MAX_RATE?" in output, (
        f"the journal names the wrong key and the right one: {output[-500:]}"
    )
    it.configure()
    it.call("systemctl", "start", SERVICE)


# MARK: Credentials

@check("the client id as a credential, from /etc/credstore: it is read, and an invalid one is refused by name")
def client_credential(it):
    cursor = it.cursor()
    it.configure(GOOGLE_CLIENT_ID=None)
    it.machine.write("/etc/credstore/refresh-worker.client-id", "two words\n", mode=0o600)
    it.call("systemctl", "restart", SERVICE, expect=1)
    output = it.journal(since=cursor)
    assert it.property("ExecMainStatus") == "78" and "credential client-id, line 1" in output, (
        f"the service exits with 78 and names the line of the credential: {output[-500:]}"
    )
    it.machine.write("/etc/credstore/refresh-worker.client-id", CLIENT + "\n", mode=0o600)
    it.call("systemctl", "start", SERVICE)
    it.wait_active()
    it.wait_refreshing()


@check("the service also starts without that credential")
def no_client_credential(it):
    it.call("rm", "-f", "/etc/credstore/refresh-worker.client-id")
    it.configure()
    it.call("systemctl", "restart", SERVICE)
    it.wait_active()
    it.wait_refreshing()


@check("the key ring as a credential, from a file that only root can read")
def key_credential(it):
    it.shell(f"install -m 0600 -o root -g root {KEYS} /root/keys")
    refresh_with(it, "LoadCredential=key-ring:/root/keys")


@check("the key ring as an encrypted credential, whose file this machine alone can open")
def encrypted_key_credential(it):
    sealed = "/etc/credstore.encrypted/refresh-worker.key-ring"
    it.documented("install -d -m 700 /etc/credstore.encrypted")
    it.documented(
        "runuser -u refresh-worker -- cat /etc/refresh-worker/keys |\n"
        f"        systemd-creds encrypt --name=key-ring - {sealed}"
    )
    assert it.machine.run("grep", "-qF", it.machine.read(KEYS).split()[-1], sealed).returncode == 1, (
        "the file does not show the key"
    )
    refresh_with(it, f"LoadCredentialEncrypted=key-ring:{sealed}")
    # It is the operator's, and no installed file that an uninstall removes.
    it.call("rm", sealed)


def refresh_with(it, credential):
    """Checks that the service refreshes with the credential, and without a key file."""
    it.call("mv", KEYS, f"{KEYS}.aside")
    it.drop_in(SERVICE, "[Service]", credential)
    it.call("systemctl", "restart", SERVICE)
    it.wait_active()
    before = len(it.events("refresh", outcome="refreshed"))
    # Read from the log: this is about the service, not the commands.
    wait_for(lambda: len(it.events("refresh", outcome="refreshed")) > before + 5, 40, "it refreshes")
    it.call("mv", f"{KEYS}.aside", KEYS)
    it.drop_in(SERVICE)
    it.call("systemctl", "restart", SERVICE)


@check("the listeners: systemd's socket, secrets from /etc/credstore, a unix socket only for the service's group")
def listeners(it):
    secret, key = "a secret of the app that is long enough", "rwc_credential-of-the-mailer"
    digest = hashlib.sha256(key.encode()).hexdigest()
    services = {"services": [{"name": "mailer", "credential_sha256": digest, "scopes": ["*"], "users": ["*"]}]}
    it.machine.write("/etc/credstore/refresh-worker.jwt-secret", secret + "\n", mode=0o600)
    it.machine.write("/etc/credstore/refresh-worker.services", json.dumps(services), mode=0o600)
    internal = "/run/refresh-worker/internal.sock"
    it.configure(REFRESH_WORKER_LISTEN="systemd:public", REFRESH_WORKER_LISTEN_INTERNAL=f"unix:{internal}")
    # A refused call is also deadly here.
    it.drop_in(SERVICE, "[Service]", "SystemCallErrorNumber=kill", "SystemCallFilter=setpriority")
    it.call("systemctl", "stop", SERVICE)
    it.call("systemctl", "start", "refresh-worker.socket")
    assert it.property("SubState") == "dead", "the socket alone does not start the service"
    # The first client starts the service, and waits for its answer.
    it.call("curl", "-sSf", "http://127.0.0.1:8080/readyz", expect=None)
    it.wait_active()
    wait_for(lambda: it.machine.run("curl", "-sf", "http://127.0.0.1:8080/readyz").returncode == 0, 20, "it is ready")
    assert it.modes("/run/refresh-worker", internal) == ["refresh-worker 750", "refresh-worker 660"], (
        "only the service's group can use the internal socket"
    )
    user = next(iter(it.grants()))
    answer = it.call("curl", "-sSf", "--unix-socket", internal, "-H", f"Authorization: Bearer {key}",
                     f"http://localhost/v1/grants/{user}/token")
    assert json.loads(answer)["token_type"] == "Bearer", "a token is vended"
    stranger = it.machine.run("runuser", "-u", "nobody", "--", "curl", "-sf", "--unix-socket", internal, "http://localhost/healthz")
    assert stranger.returncode != 0, "a stranger cannot use the internal socket"
    it.call("systemctl", "stop", "refresh-worker.socket", SERVICE)
    it.drop_in(SERVICE)
    it.call("rm", "/etc/credstore/refresh-worker.jwt-secret", "/etc/credstore/refresh-worker.services")
    it.configure()
    it.call("systemctl", "start", SERVICE)
    it.wait_active()


@check("no key ring: exit 78, and the journal explains how to make one")
def no_key(it):
    cursor = it.cursor()
    it.call("mv", KEYS, f"{KEYS}.aside")
    it.call("systemctl", "restart", SERVICE, expect=1)
    assert it.property("ExecMainStatus") == "78", "the service exits with 78"
    assert "keys generate" in it.journal(since=cursor), "the journal names the command that makes a key ring"
    it.call("mv", f"{KEYS}.aside", KEYS)
    it.call("systemctl", "start", SERVICE)


# MARK: A full disk

@check("a full disk under the logs does not stop the refreshes, and the log continues afterwards")
def full_log(it):
    it.call("systemctl", "stop", SERVICE)
    it.shell("mount -t tmpfs -o size=64k,mode=0750,uid=refresh-worker,gid=refresh-worker none /var/log/refresh-worker"
             " && head -c 1M /dev/zero >/var/log/refresh-worker/ballast || true")
    cursor = it.cursor()
    it.call("systemctl", "start", SERVICE)
    it.wait_active()
    it.wait_refreshing()
    it.wait_refreshing()
    assert "metrics" in it.journal(since=cursor), "the journal names the metrics log"
    it.call("rm", "/var/log/refresh-worker/ballast")
    wait_for(lambda: it.machine.run("test", "-s", METRICS).returncode == 0, 20, "the log continues")
    it.call("systemctl", "stop", SERVICE)
    it.call("umount", "/var/log/refresh-worker")
    it.call("systemctl", "start", SERVICE)


# MARK: Restoring

@check("a backup is restored as docs/operate.md says")
def restore(it):
    it.documented("systemctl stop refresh-worker.socket refresh-worker refresh-worker-once.timer")
    it.documented("refresh-worker restore /var/lib/refresh-worker/backup.tar")
    it.call("systemctl", "start", SERVICE)
    it.wait_active()
    assert len(it.grants()) == 20, "every grant of the backup is restored"
    it.wait_refreshing()


# MARK: Passes without a daemon

@check("one pass while the daemon runs is harmless")
def pass_beside(it):
    it.call("systemctl", "start", ONCE)
    assert it.property("Result", ONCE) == "success", f"the pass succeeds: {it.journal(ONCE)[-500:]}"


@check("one pass alone refreshes what is due, with all of its hardening")
def pass_alone(it):
    it.call("systemctl", "disable", "--now", SERVICE)
    code, summary = pass_over_due(it)
    assert code == 0 and summary["refreshed"] > 0, "the pass refreshes what is due"


@check("a pass that leaves grants due ends with 75, which systemd does not count as a failure")
def pass_later(it):
    it.control("settings", outage="http503")
    code, summary = pass_over_due(it)
    assert code == 75 and summary["retrying"] > 0, "the pass leaves grants due"
    assert it.property("ActiveState", ONCE) == "inactive", "the pass does not count as failed"
    it.control("settings", outage="none")


def pass_over_due(it):
    """Starts a pass once a grant is due; it must not count as failed. Returns its exit code and its summary."""
    # systemd forgets a unit that has ended well, together with its exit code.
    it.drop_in(ONCE, "[Service]", 'ExecStopPost=/bin/sh -c "echo ended with $EXIT_STATUS"')
    wait_for(lambda: it.due(), 60, "something is due")
    cursor = it.cursor()
    it.call("systemctl", "start", ONCE)
    code = int(re.search(r"^ended with ([0-9]+)$", it.journal(ONCE, since=cursor), re.MULTILINE)[1])
    it.drop_in(ONCE)
    return code, it.summary(cursor)


@check("the timer starts passes")
def timer(it):
    it.drop_in("refresh-worker-once.timer", "[Timer]", "OnCalendar=*:*:0/4", "AccuracySec=1s")
    cursor = it.cursor()
    it.call("systemctl", "enable", "--now", "refresh-worker-once.timer")
    wait_for(lambda: it.journal(ONCE, since=cursor).count('"event":"run_once"') >= 2, 60, "two passes")
    it.call("systemctl", "disable", "--now", "refresh-worker-once.timer")
    it.drop_in("refresh-worker-once.timer")
    when = it.call("systemd-analyze", "calendar", "--iterations=2", "*:0/2")
    assert "Next elapse" in when, "systemd accepts the calendar of the timer"


@check("a backup's unit makes an archive that only the service user can read")
def backup(it):
    it.call("systemctl", "start", "refresh-worker-backup.service")
    archives = it.call("find", "/var/lib/refresh-worker/backups", "-printf", "%m %u %f\n").splitlines()
    assert archives[0] == "700 refresh-worker backups", "the folder is private"
    made = re.fullmatch(r"600 refresh-worker (refresh-worker-[0-9TZ]+\.tar)", archives[1])
    listed = it.call("tar", "--list", "--file", f"/var/lib/refresh-worker/backups/{made[1]}").split()
    assert listed == ["var/lib/refresh-worker/grants.sqlite", "etc/refresh-worker/refresh-worker.conf"], (
        "the archive has the database and the configuration"
    )


@check("the crontab's line works")
def crontab(it):
    lines = it.machine.read("/usr/local/share/doc/refresh-worker/crontab").splitlines()
    [line] = [line for line in lines if line.startswith("*/")]
    user, command = line.split(None, 6)[5:]
    assert user == "refresh-worker", "the crontab runs as the service's user"
    wait_for(lambda: it.due(), 60, "something is due")
    done = it.machine.run("runuser", "-u", user, "--", "env", "-i", "PATH=/usr/bin:/bin", "/bin/sh", "-c", command)
    assert done.returncode in (0, 75) and not done.stdout, (
        f"the crontab's command ends without output; it wrote: {done.stdout}{done.stderr}"
    )


# MARK: Afterwards

@check("after a restart of the machine the enabled service runs again")
def reboot(it):
    it.call("systemctl", "enable", "--now", SERVICE)
    it.wait_active()
    it.machine.power_off()
    it.machine.boot()
    it.wait_active()
    # The sandbox has lost its state, unlike Google: the users sign in again.
    it.start_sandbox()
    it.as_service("grants", "import", "-", "--replace", "--config", CONFIGURATION, stdin=it.create(20, "user"))
    it.wait_refreshing(90)


@check("no token and no key is in the journal or the metrics log")
def no_secret(it):
    text = it.call("journalctl", "--no-pager", "--output=cat") + it.shell("cat /var/log/refresh-worker/*.jsonl*")
    assert len(text) > 10_000, "the journal and the logs have content"
    secrets = [grant[name] for grant in it.created for name in ("access_token", "refresh_token")]
    secrets += [word for word in it.machine.read(KEYS).split() if len(word) > 40]
    assert len(secrets) > 40, "the grants and the ring hold secrets"
    assert not any(secret in text for secret in secrets), "no secret is in the journal or a log"
    assert "ya29." not in text and "1//" not in text, "no token is in the journal or a log"


@check("uninstall leaves configuration, keys, grants and logs")
def uninstall(it):
    it.call("systemctl", "disable", "--now", SERVICE)
    it.host("make", "uninstall", f"DESTDIR={it.machine.root}")
    it.call("systemctl", "daemon-reload")
    assert it.property("LoadState") == "not-found", "the unit is removed"
    it.call("ls", KEYS, CONFIGURATION, "/var/lib/refresh-worker/grants.sqlite", METRICS)
    left = it.shell("find /usr/local /etc -name '*refresh-worker*' ! -path '/etc/refresh-worker*' -not -type d")
    assert not left.strip(), "every installed file is removed"
