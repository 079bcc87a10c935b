"""A separate Debian machine with a booted systemd: a root folder made by debootstrap, started by systemd-nspawn.

It never uses the file tree of this machine: a booting systemd empties /tmp. The machine's own network has only
loopback, so that its programs cannot reach other machines.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

from expectations import wait_for

# The packages for the installed worker, the sandbox and the checks.
PACKAGES = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "ca-certificates",
    "libcurl4",
    "libnghttp2-14",
    "libsqlite3-0",
    "libpq5",
    "libssl3",
    "libmicrohttpd12",
    "libgnutls30",
    "logrotate",
    "curl",
]
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0",
    "SYSTEMD_PAGER": "", "HOME": "/root",
}


class Machine:
    def __init__(self):
        # Not /tmp, which may be a small in-memory file system.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="refresh-worker-systemd-", dir="/var/tmp"))
        self.root = self.folder / "root"
        self.process = None

    def build(self, suite="bookworm"):
        subprocess.run(
            ["debootstrap", "--variant=minbase", "--include=" + ",".join(PACKAGES), suite, str(self.root)],
            stdout=open(self.folder / "debootstrap.log", "wb"), stderr=subprocess.STDOUT, check=True, timeout=400,
        )

    def copy(self):
        """Another machine with the same files, which must not be booted yet."""
        other = Machine()
        subprocess.run(["cp", "--archive", "--reflink=auto", str(self.root), str(other.root)], check=True, timeout=200)
        return other

    def boot(self):
        self.process = subprocess.Popen(
            [
                "systemd-nspawn", "--quiet", "--directory", str(self.root), "--boot", "--register=no", "--keep-unit",
                "--private-network", "--console=pipe", f"--machine=refresh-worker-{os.getpid()}",
            ],
            stdin=subprocess.DEVNULL, stdout=open(self.folder / "console.log", "ab"), stderr=subprocess.STDOUT,
            # A Ctrl-C is for the script, which then stops the machine.
            start_new_session=True,
        )
        wait_for(self.init, 30, "the machine's systemd is there")
        # "degraded" means that a device is missing in the container; the checks cover the units that matter.
        wait_for(
            lambda: self.call("systemctl", "is-system-running", expect=None).strip() in ("running", "degraded"),
            90, "the machine has started",
        )
        self.show_boot_id()

    def show_boot_id(self):
        """Removes the boot id that systemd-nspawn mounts over the kernel's, because no real machine has one.

        A unit with ProtectProc= or ProtectKernelTunables= sees the kernel's id, and a command from a shell the mounted
        one. So each would count the other's leases as those of an earlier boot.
        """
        self.shell("while umount /proc/sys/kernel/random/boot_id 2>/dev/null; do :; done")

    def init(self):
        """The number of the machine's first process, as this machine counts; it is the one child of systemd-nspawn."""
        assert self.process.poll() is None, f"systemd-nspawn runs; its output is in {self.folder}/console.log"
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next((child for child in children if self.comm(child) == "systemd"), None)

    @staticmethod
    def comm(process):
        try:
            return pathlib.Path(f"/proc/{process}/comm").read_text().strip()
        except OSError:
            return ""

    def run(self, *words, stdin=None, timeout=100):
        """Runs a command in the machine, as root and as if from a root shell, and returns its result."""
        enter = ["nsenter", "-t", self.init(), "-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w", "--"]
        return subprocess.run(
            [*enter, *words], input=stdin, capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT,
        )

    def call(self, *words, expect=0, **more):
        """Runs a command that must end with an exit code, any if it is `None`, and returns its standard output."""
        done = self.run(*words, **more)
        output = (done.stdout + done.stderr)[-700:]
        assert expect is None or done.returncode == expect, (
            f"`{' '.join(words)}` exits with the expected code; it wrote: {output}"
        )
        return done.stdout

    def shell(self, script, **more):
        return self.call("/bin/sh", "-c", script, **more)

    def write(self, path, text, mode=0o644):
        """Writes a file in the machine, through the machine, so that its mounts apply."""
        self.call("/bin/sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"', "sh", path,
                  f"{mode:o}", stdin=text)

    def read(self, path):
        return self.call("cat", path)

    def power_off(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            try:
                self.run("systemctl", "poweroff", timeout=20)
                self.process.wait(60)
            except (subprocess.TimeoutExpired, AssertionError):
                # The death of its first process ends the whole machine.
                self.process.kill()
                self.process.wait(20)
        self.process = None

    def remove(self):
        self.power_off()
        # A mount that was left behind would show folders of another run.
        mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
        assert not any(mount.startswith(str(self.folder)) for mount in mounts), (
            f"nothing is mounted below {self.folder}"
        )
        shutil.rmtree(self.folder)


def missing_tools():
    needed = {"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container", "nsenter": "util-linux"}
    return [package for tool, package in needed.items() if shutil.which(tool) is None]


def install_tools(packages):
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", *command], env=environment, stdout=subprocess.DEVNULL, check=True, timeout=300)
