"""Podman with a storage of its own, so that this machine's images and containers stay as they are."""

import os
import pathlib
import resource
import shutil
import subprocess

# runc is the runtime of Docker; crun, the usual one of Podman, refuses machines with both versions of cgroups.
PACKAGES = {
    "podman": "podman", "runc": "runc", "netavark": "netavark", "aardvark-dns": "aardvark-dns", "iptables": "iptables",
    "debootstrap": "debootstrap", "openssl": "openssl", "curl": "curl",
}
# The folder of Podman's own programs.
HELPERS = "/usr/lib/podman"
# The limit of processes that Podman sets for itself.
PROCESSES = 32_768

# This machine may have no systemd.
CONFIGURATION = """
[containers]
log_driver = "k8s-file"
# Podman's own limits may be above those of this machine, which then only CAP_SYS_RESOURCE could raise.
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]

[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "{folder}/tmp"

[network]
network_config_dir = "{folder}/networks"
"""

STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/storage"
runroot = "{folder}/runtime"
"""


class Engine:
    def __init__(self, folder):
        self.folder = folder
        _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
        _, processes = resource.getrlimit(resource.RLIMIT_NPROC)
        (folder / "containers.conf").write_text(
            CONFIGURATION.format(folder=folder, files=files, processes=min(processes, PROCESSES))
        )
        (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
        self.environment = {
            **os.environ, "CONTAINERS_CONF": f"{folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
            # Podman's own format has no health check.
            "BUILDAH_FORMAT": "docker",
            # Podman lets systemd repeat the health check; here each check is asked for.
            "DISABLE_HC_SYSTEMD": "true",
        }

    def call(self, *words, expect=0, timeout=120, **more):
        """Runs a command that must end with an exit code, any if it is `None`, and returns its standard output."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, errors="replace", timeout=timeout,
            **({} if "input" in more else {"stdin": subprocess.DEVNULL}), **more,
        )
        assert expect is None or done.returncode == expect, (
            f"`{' '.join(map(str, words))}` exits with {expect} and not {done.returncode}; "
            f"it wrote: {(done.stdout + done.stderr)[-3000:]}"
        )
        return done.stdout

    def podman(self, *words, **more):
        return self.call("podman", *words, **more)

    def inspect(self, name, field, kind="container"):
        return self.podman(kind, "inspect", "--format", "{{" + field + "}}", name).strip()

    def logs(self, name):
        """Standard output and standard error of a container."""
        done = subprocess.run(
            ["podman", "logs", name], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=60,
        )
        return done.stdout

    def is_healthy(self, name):
        done = subprocess.run(
            ["podman", "healthcheck", "run", name], env=self.environment, capture_output=True, timeout=60,
        )
        return done.returncode == 0

    def remove(self, *names):
        self.podman("rm", "--force", "--time", "0", "--volumes", *names, expect=None)

    def remove_everything(self):
        """Removes all containers, volumes, networks and images, and what is mounted for them."""
        removal = ["rm", "--all", "--force", "--time", "0"]
        # The first time, containers stay whose network others use.
        for command in (
            removal, removal, ["volume", "rm", "--all", "--force"], ["network", "prune", "--force"],
            ["rmi", "--all", "--force"],
        ):
            self.podman(*command, expect=None, timeout=300)
        mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
        for mount in reversed(mounts):
            if mount.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", mount], check=True, timeout=60)


def missing_tools():
    path = f"{os.environ['PATH']}:{HELPERS}"
    return [package for tool, package in PACKAGES.items() if shutil.which(tool, path=path) is None]
