"""The worker installed on the machine as docs/operate.md says, and the sandbox that plays Google there."""

import json
import os
import pathlib
import re
import subprocess
import time

from expectations import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = ROOT / ".build" / "static" / "release"
SWIFT = os.environ.get("SWIFT", "swift").split()
SERVICE = "refresh-worker.service"
ONCE = "refresh-worker-once.service"
CONFIGURATION = "/etc/refresh-worker/refresh-worker.conf"
METRICS = "/var/log/refresh-worker/metrics.jsonl"
CLIENT = "1234-demo.apps.googleusercontent.com"
SANDBOX = "http://127.0.0.1:8099"
LIFETIME = 12


class Deployment:
    def __init__(self, machine):
        self.machine = machine
        self.call, self.shell = machine.call, machine.shell
        self.created = []
        self.settings = {
            "GOOGLE_CLIENT_ID": CLIENT,
            "REFRESH_WORKER_TOKEN_ENDPOINT": SANDBOX + "/token",
            "REFRESH_WORKER_USERINFO_ENDPOINT": SANDBOX + "/v1/userinfo",
            "REFRESH_WORKER_TOKENINFO_ENDPOINT": SANDBOX + "/tokeninfo",
            "REFRESH_WORKER_REVOCATION_ENDPOINT": SANDBOX + "/revoke",
            "REFRESH_WORKER_SUMMARY_INTERVAL": "1",
        }

    # MARK: Installation

    def install(self):
        """`make install` into the machine's root."""
        self.host("make", "install", f"DESTDIR={self.machine.root}")
        self.install_sandbox()

    def install_sandbox(self):
        """Puts the sandbox on the machine, which is not part of an installation."""
        self.host(*SWIFT, "build", "--configuration", "release", "--static-swift-stdlib", "--product", "google-sandbox",
                  "--scratch-path", ".build/static")
        self.host("install", "-m", "0755", str(BINARIES / "google-sandbox"), f"{self.machine.root}/usr/local/bin/")

    @staticmethod
    def host(*words):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=590)
        assert done.returncode == 0, (
            f"`{' '.join(words)}` exits with 0; it wrote: {(done.stdout + done.stderr)[-1500:]}"
        )

    def documented(self, line, **more):
        """Runs a line of docs/operate.md, exactly as it is written there."""
        text = (ROOT / "docs" / "operate.md").read_text()
        assert re.search(rf"^ +{re.escape(line)}( +#.*)?$", text, re.MULTILINE), (
            f"docs/operate.md has the line `{line}`"
        )
        return self.shell("cd /root; " + line, **more)

    def configure(self, **changes):
        """Writes the example with additional settings; `None` removes one."""
        settings = {**self.settings, **changes}
        lines = [f"{name}={value}" for name, value in settings.items() if value is not None]
        example = (ROOT / "deploy" / "refresh-worker.conf.example").read_text()
        self.machine.write(CONFIGURATION, example + "\n".join(lines) + "\n")

    def drop_in(self, unit, *lines):
        """Changes a unit with a drop-in, like an operator; without lines the drop-in is removed."""
        path = f"/etc/systemd/system/{unit}.d/check.conf"
        if lines:
            self.machine.write(path, "\n".join(lines) + "\n")
        else:
            self.call("rm", "-f", path)
        self.call("systemctl", "daemon-reload")

    def recover(self):
        """Restores the machine after a failed check, so that the next one does not fail because of it."""
        self.shell("rm -rf /etc/systemd/system/refresh-worker*.d /etc/credstore/refresh-worker.*; "
                   "systemctl daemon-reload; umount -q /var/log/refresh-worker; "
                   "cd /etc/refresh-worker; if [ -e keys.aside ]; then mv keys.aside keys; fi")
        self.configure()
        self.control("settings", outage="none")
        self.call("systemctl", "log-level", "info")
        self.call("systemctl", "stop", "refresh-worker-once.timer", SERVICE, expect=None)
        self.call("systemctl", "reset-failed")
        self.call("systemctl", "start", SERVICE, expect=None)

    def as_service(self, *words, **more):
        return self.call("runuser", "-u", "refresh-worker", "--", "refresh-worker", *words, **more)

    # MARK: The sandbox

    def start_sandbox(self):
        self.call("systemd-run", "--quiet", "--unit=google-sandbox", "--property=Restart=no",
                  "/usr/local/bin/google-sandbox", "--quiet")
        wait_for(lambda: self.machine.run("curl", "-sf", SANDBOX + "/control/stats").returncode == 0, 20,
                 "the sandbox answers")
        self.control("settings", lifetime=LIFETIME)

    def control(self, path, **body):
        words = ["curl", "-sS", "--fail-with-body", f"{SANDBOX}/control/{path}"]
        return json.loads(self.call(*words, *(["--json", json.dumps(body)] if body else [])))

    def create(self, count, prefix):
        """Grants at the sandbox, as the lines of an import file."""
        created = self.control("grants", count=count, prefix=prefix)
        self.created += created
        names = ["access_token", "refresh_token", "scope", "client_id"]
        lines = [
            {"user_id": grant["email"], "google_email": grant["email"], "google_user_id": grant["sub"],
             "expires_at": time.strftime("%Y-%m-%dT%H:%M:%S.000000", time.gmtime(grant["expires_at"])),
             **{name: grant[name] for name in names}}
            for grant in created
        ]
        return "".join(json.dumps(line) + "\n" for line in lines)

    # MARK: Inspection

    def property(self, name, unit=SERVICE):
        return self.call("systemctl", "show", "--property", name, "--value", unit).strip()

    def pid(self):
        return self.property("MainPID")

    def wait_active(self, seconds=30):
        wait_for(lambda: self.property("SubState") == "running", seconds,
                 lambda: "the service runs: " + self.journal()[-700:])

    def journal(self, unit=SERVICE, since=None):
        words = ["journalctl", "--no-pager", "--output=cat", f"--unit={unit}"]
        return self.call(*words, *([f"--after-cursor={since}"] if since else []))

    def cursor(self):
        return self.call("journalctl", "--no-pager", "--lines=0", "--show-cursor").split("cursor: ")[1].strip()

    def events(self, name, **fields):
        lines = [json.loads(line) for line in self.machine.read(METRICS).splitlines()]
        return [
            line for line in lines
            if line["event"] == name and all(line.get(key) == value for key, value in fields.items())
        ]

    def grants(self):
        lines = self.as_service("grants", "list", "--json", "--config", CONFIGURATION).splitlines()
        return {grant["user_id"]: grant for grant in map(json.loads, lines)}

    def successes(self):
        """The time of each grant's last refresh."""
        return {user: grant["last_success_at"] for user, grant in self.grants().items()}

    def due(self):
        """The number of grants that are due now."""
        return json.loads(self.as_service("status", "--json", "--config", CONFIGURATION, expect=None))["due"]

    def summary(self, cursor):
        """The last summary of a pass since a place in the journal."""
        summaries = [line for line in self.journal(ONCE, since=cursor).splitlines() if '"event":"run_once"' in line]
        assert summaries, f"the pass writes a summary: {self.journal(ONCE, since=cursor)[-500:]}"
        return json.loads(summaries[-1])

    def wait_refreshing(self, seconds=40):
        """Waits until every grant was refreshed after now."""
        before = self.successes()
        assert before, "grants are stored"
        wait_for(lambda: all(value != before[user] for user, value in self.successes().items()), seconds,
                 lambda: "every grant is refreshed: " + self.journal()[-500:], pause=0.5)

    def modes(self, *paths):
        """Owner and mode of files, as in `refresh-worker 600`."""
        return self.call("stat", "--format=%U %a", *paths).splitlines()
