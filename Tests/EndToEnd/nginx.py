"""A real nginx with one of deploy/nginx's configurations, adapted to the names and files of a scenario."""

import shutil
import socket
import subprocess

from expectations import wait_for
from harness import ROOT, Skipped
from ports import free_port

PROGRAM = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
MAIN = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log info;
{user}
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    include {site};
}}
"""


class Nginx:
    """Serves a site, which is the text of a configuration, on a port of this machine."""

    @classmethod
    def deployed(cls, fixture, name, replacements):
        """Serves a file of deploy/nginx after the replacements, each of which must match; `{port}` is replaced by its
        port."""
        port = free_port()
        text = (ROOT / "deploy" / "nginx" / name).read_text()
        for old, new in replacements.items():
            assert old in text, f"{name} contains {old!r}"
            text = text.replace(old, str(new).format(port=port))
        return cls(fixture.folder, text, port)

    def write(self, text):
        """Replaces the site, which nginx serves after a reload."""
        self.site.write_text(text)

    def __init__(self, folder, text, port):
        if PROGRAM is None:
            raise Skipped("nginx is not installed")
        self.folder = folder
        self.port = port
        self.text = text
        self.site, main = self.folder / "site.conf", self.folder / "nginx.conf"
        self.write(text)
        # As root, nginx would serve as a user that cannot read the scenario's folder.
        root = subprocess.run(["id", "-u"], capture_output=True, text=True).stdout.strip() == "0"
        main.write_text(MAIN.format(folder=self.folder, site=self.site, user="user root;" if root else ""))
        command = [PROGRAM, "-c", main, "-e", self.folder / "nginx-error.log", "-p", self.folder]
        tried = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=60)
        assert tried.returncode == 0, f"nginx accepts its configuration; it wrote: {tried.stderr}"
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self.wait_until_open()

    def wait_until_open(self):
        def connects():
            assert self.process.poll() is None, f"nginx runs; it wrote: {self.errors()}"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=10).close()
                return True
            except OSError:
                return False

        wait_for(connects, 30, "nginx listens")

    def errors(self):
        return (self.folder / "nginx-error.log").read_text()[-1000:]

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
