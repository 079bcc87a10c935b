"""A machine with an installed worker: a root folder that shares this machine's programs, kernel and network."""

import os
import pathlib
import subprocess

from harness import CLIENT, ROOT, WORKER

SERVICE, JANE, EXTRA = 61234, 61235, 61240
CONFIGURATION = "/etc/refresh-worker/refresh-worker.conf"
DOCUMENTS = "/usr/local/share/doc/refresh-worker"
# Mounted in a namespace of each command's own, so that nothing has to be unmounted.
ENTER = """
root=$1; shift
mount --bind /usr "$root/usr" && mount --bind "$root/local" "$root/usr/local"
for folder in dev proc opt; do [ ! -d "/$folder" ] || mount --rbind "/$folder" "$root/$folder"; done
exec "$@"
"""


class Installed:
    """The machine, installed by scripts/install, with the user and the folders that a package makes."""

    def __init__(self, fixture):
        self.root = fixture.folder / "machine"
        for name in ("usr", "local", "dev", "proc", "opt", "etc", "tmp", "root", "home/jane"):
            (self.root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if pathlib.Path("/", name).is_symlink():
                (self.root / name).symlink_to(pathlib.Path("/", name).readlink())
        self.install()
        self.write("/etc/passwd", f"root:x:0:0::/root:/bin/sh\njane:x:{JANE}:{JANE}::/home/jane:/bin/sh\n"
                   f"refresh-worker:x:{SERVICE}:{SERVICE}::/var/lib/refresh-worker:/usr/sbin/nologin\n")
        self.write("/etc/group", f"root:x:0:\njane:x:{JANE}:\nrefresh-worker:x:{SERVICE}:\n"
                   f"extra:x:{EXTRA}:refresh-worker\n")
        for folder, mode in {"etc": 0o750, "var/lib": 0o700, "var/log": 0o750}.items():
            path = self.root / folder / "refresh-worker"
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(mode)
            os.chown(path, SERVICE, SERVICE)
        fixture.folder.chmod(0o755)
        url = fixture.sandbox.url
        with open(self.path(CONFIGURATION), "a") as file:
            file.write(f"GOOGLE_CLIENT_ID={CLIENT}\n" + "".join(
                f"REFRESH_WORKER_{name}_ENDPOINT={url}/{path}\n" for name, path in
                [("TOKEN", "token"), ("USERINFO", "v1/userinfo"), ("TOKENINFO", "tokeninfo"), ("REVOCATION", "revoke")]
            ))

    def install(self):
        """The installation that a package holds; it can be repeated."""
        environment = {**os.environ, "BINARY": str(WORKER), "PREFIX": "/usr/local", "DESTDIR": str(self.root)}
        # The prefix is a mount of its own.
        (self.root / "usr" / "local").symlink_to("../local")
        subprocess.run([ROOT / "scripts" / "install", "install"], env=environment, check=True, capture_output=True)
        (self.root / "usr" / "local").unlink()

    def path(self, path):
        """Where a file of the machine is for the test."""
        return self.root / path.lstrip("/")

    def write(self, path, text, owner=0):
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text)
        os.chown(self.path(path), owner, owner)

    def owners(self):
        """The owners of all files that the worker and its commands have made."""
        made = [self.path("/etc/refresh-worker/keys"), *self.path("/var").rglob("refresh-worker/*")]
        return {path.stat().st_uid for path in made}

    def command(self, *words, user="root", prefix=(), program="refresh-worker"):
        # For root chroot would need the right that a test takes away.
        become = [] if user == "root" else [f"--userspec={user}"]
        return ["unshare", "--mount", "bash", "-ec", ENTER, "bash", str(self.root), *prefix,
                "chroot", *become, str(self.root), program, *words]

    @staticmethod
    def environment(variables):
        return {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **variables}

    def run(self, *words, expect=0, stdin=None, user="root", prefix=(), **variables):
        """Runs a command on the machine, and returns its result."""
        result = subprocess.run(
            self.command(*words, user=user, prefix=prefix), input=stdin, capture_output=True, text=True, timeout=120,
            env=self.environment(variables),
        )
        assert result.returncode == expect, f"`{' '.join(words)}` exits with {expect}: {result.stdout}{result.stderr}"
        return result

    def shell(self, script):
        """Runs a line of a person who is root on the machine."""
        subprocess.run(self.command("-ec", script, program="sh"), env=self.environment({}), check=True, timeout=120)

    def start_program(self, program, *words, user):
        """Starts another program; the caller ends it."""
        return subprocess.Popen(self.command(*words, user=user, program=program), env=self.environment({}))

    def start(self, *words, user="root"):
        """Starts the worker or a command that stays; the caller ends it."""
        return subprocess.Popen(
            self.command(*words, user=user), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment({}),
        )
