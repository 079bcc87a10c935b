"""The checks of the Debian package: installed, upgraded, removed and purged under a booted systemd, in this order."""

import pathlib
import re

from checklist import adding_to
from checks import KEYS, METRICS
from deployment import CONFIGURATION, ROOT, SERVICE, Deployment
from expectations import wait_for
from links import check_links

CHECKS = []
check = adding_to(CHECKS)
DATABASE = "/var/lib/refresh-worker/grants.sqlite"
PREVIOUS = "0.0.9"


class PackageDeployment(Deployment):
    """The worker from its Debian package, instead of from `make install`."""

    def install(self):
        """Builds the package, and the same as a previous version, and puts both on the machine."""
        binary = str(ROOT / ".build/static/release/refresh-worker")
        self.host("make", "deb")
        text = (ROOT / "Sources/RefreshWorker/Worker/Process/Version.swift").read_text()
        self.version = re.search(r'current = "(.*)"', text)[1]
        self.host("env", f"VERSION={PREVIOUS}", f"BINARY={binary}", "scripts/build-deb")
        self.host("lintian", "--fail-on", "error,warning", str(ROOT / ".build" / self.file(self.version)))
        for version in (PREVIOUS, self.version):
            self.host("install", "-m", "0644", str(ROOT / ".build" / self.file(version)), f"{self.machine.root}/root/")
        self.install_sandbox()

    @staticmethod
    def file(version):
        return f"refresh-worker_{version}_amd64.deb"

    def dpkg(self, *words):
        return self.call("dpkg", *words)

    def read_state(self):
        """What an upgrade must not change."""
        return self.machine.read(CONFIGURATION), self.machine.read(KEYS)

    def documented(self, line, **more):
        """Runs a line of README.Debian, exactly as it is written there."""
        text = (ROOT / "deploy/debian/README.Debian").read_text()
        assert re.search(rf"^ +(\d\. )?{re.escape(line)}$", text, re.MULTILINE), f"README.Debian has the line `{line}`"
        return self.shell("cd /root; " + line, **more)


@check("installing makes the user and the folders, and starts nothing", needed=True)
def install(it):
    output = it.dpkg("--install", f"/root/{it.file(PREVIOUS)}")
    readme = (ROOT / "deploy/debian/README.Debian").read_text()
    steps = re.findall(r"^ \d\. .*$", readme, re.MULTILINE)
    assert len(steps) == 4 and all(step in output for step in steps), f"the installation ends with the steps: {output}"
    modes = it.modes("/etc/refresh-worker", "/var/lib/refresh-worker", "/var/log/refresh-worker")
    assert modes == ["refresh-worker 750", "refresh-worker 700", "refresh-worker 750"], (
        "each folder has its owner and mode"
    )
    for unit in (SERVICE, "refresh-worker.socket", "refresh-worker-once.timer", "refresh-worker-backup.timer"):
        state = it.property("UnitFileState", unit), it.property("ActiveState", unit)
        assert state == ("disabled", "inactive"), f"{unit} is neither enabled nor started"
    assert not it.call("dpkg", "--verify", "refresh-worker"), "the files are as the package has them"


@check("help and documents name documents that exist; manual pages and completions are where programs look for them")
def documents(it):
    named = re.findall(r"/usr/share/doc/refresh-worker/[a-z-]+\.md", it.call("refresh-worker", "--help"))
    assert named, "the help names documents"
    it.call("ls", *named, "/usr/share/doc/refresh-worker/README.md")
    check_links(pathlib.Path(it.machine.root, "usr/share/doc/refresh-worker"))
    it.call("ls", "/usr/share/man/man1/refresh-worker.1.gz", "/usr/share/man/man5/refresh-worker.conf.5.gz",
            "/usr/share/bash-completion/completions/refresh-worker",
            "/usr/share/zsh/vendor-completions/_refresh-worker",
            "/usr/share/fish/vendor_completions.d/refresh-worker.fish")


@check("the steps of README.Debian start a worker that refreshes", needed=True)
def start(it):
    it.configure()
    it.start_sandbox()
    it.documented("refresh-worker keys generate")
    it.as_service("grants", "import", "-", "--config", CONFIGURATION, stdin=it.create(20, "user"))
    it.documented("refresh-worker doctor")
    it.documented("systemctl enable --now refresh-worker")
    it.wait_active()
    it.wait_refreshing()


@check("an upgrade restarts the worker, and keeps the changed configuration, the keys and the grants")
def upgrade(it):
    before = it.pid(), it.read_state()
    output = it.dpkg("--install", f"/root/{it.file(it.version)}")
    assert "keys generate" not in output, "an upgrade does not repeat the first steps"
    assert it.call("dpkg-query", "--show", "--showformat=${Version}", "refresh-worker") == it.version, "it is upgraded"
    it.wait_active()
    assert it.pid() != before[0], "the worker was restarted"
    assert it.read_state() == before[1], "configuration and keys are unchanged"
    assert it.property("UnitFileState") == "enabled", "the service is still enabled"
    assert len(it.grants()) == 20, "every grant is kept"
    it.wait_refreshing()


@check("an upgrade of a stopped worker does not start it")
def upgrade_stopped(it):
    it.call("systemctl", "stop", SERVICE)
    it.dpkg("--install", f"/root/{it.file(it.version)}")
    assert it.property("ActiveState") == "inactive", "the service stays stopped"
    it.call("systemctl", "start", SERVICE)
    it.wait_active()


@check("removing stops the worker, and leaves configuration, keys, grants and logs", needed=True)
def remove(it):
    before = it.read_state()
    it.dpkg("--remove", "refresh-worker")
    wait_for(lambda: it.property("ActiveState") == "inactive", 50, "the service is stopped")
    assert it.property("LoadState") == "not-found", "the unit is removed"
    assert it.machine.run("pidof", "refresh-worker").returncode != 0, "no worker runs"
    assert it.read_state() == before, "configuration and keys are unchanged"
    it.call("ls", DATABASE, METRICS)


@check("installed again, the worker continues with the kept grants")
def install_again(it):
    it.dpkg("--install", f"/root/{it.file(it.version)}")
    it.call("systemctl", "enable", "--now", SERVICE)
    it.wait_active()
    assert len(it.grants()) == 20, "every grant is kept"
    it.wait_refreshing()


@check("purging deletes configuration and logs, keeps keys and grants, and says so")
def purge(it):
    output = it.dpkg("--purge", "refresh-worker")
    assert "/var/lib/refresh-worker is kept" in output and "/etc/refresh-worker is kept" in output, (
        f"the output names the kept folders: {output}"
    )
    it.call("ls", KEYS, DATABASE)
    deleted = [CONFIGURATION, "/var/log/refresh-worker", "/etc/logrotate.d/refresh-worker"]
    left = it.shell(f"ls -d {' '.join(deleted)} 2>/dev/null || true")
    assert not left, "configuration and logs are deleted"
    left = it.shell("find /etc/systemd /usr /lib -name '*refresh-worker*'")
    assert not left, "no other file is left"


@check("the documented lines remove the rest")
def remove_rest(it):
    it.documented("rm -r /etc/refresh-worker /var/lib/refresh-worker")
    it.documented("userdel refresh-worker")
    assert it.machine.run("id", "refresh-worker").returncode != 0, "the user is deleted"
