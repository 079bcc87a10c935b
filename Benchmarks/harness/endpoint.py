"""The endpoint: nginx with TLS that answers every POST to /token with an access token of Google's shape.

It resumes TLS sessions, as Google's servers do. That matters to whoever opens a connection for each request.
"""

import pathlib
import shutil
import socket
import subprocess
import time

from . import measuring

# The token is 220 bytes long and made of the request's id alone: SampleGrant.issuedAccessToken makes the same.
CONFIGURATION = """
load_module /usr/lib/nginx/modules/ngx_http_echo_module.so;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
daemon off;
events {{ worker_connections 4096; }}
http {{
    # The number that SampleGrant.refreshToken begins with, as a form spells it.
    map $request_body $grant {{ "~refresh_token=1(?:%2F|/)(?:%2F|/)0(?<number>[0-9]{{10}})" $number; default unknown; }}
    map $request_id $tail {{ "~^(?<head>.{{20}})" $head; }}
    log_format issued "$msec $grant $request_id";
    access_log {folder}/issued.log issued buffer=64k flush=200ms;
    client_body_temp_path {folder}/body;
    client_body_buffer_size 16k;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:sessions:10m;
    keepalive_timeout 300s;
    keepalive_requests 1000000000;
    http2_max_concurrent_streams 256;
    default_type application/json;
    server {{
        listen 127.0.0.1:{port_h2} ssl http2 backlog=4096;
        listen 127.0.0.1:{port_h1} ssl backlog=4096;
        location = /token {{
            # The body is read before the answer goes out, as at Google's.
            echo_read_request_body;
            {delay}
            echo '{{"access_token":"ya29.a0$request_id$request_id$request_id$request_id$request_id${{request_id}}_$tail","expires_in":3599,"scope":"openid email https://www.googleapis.com/auth/gmail.readonly","token_type":"Bearer"}}';
        }}
    }}
}}
"""  # noqa: E501, since nginx takes no line break in a response


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Endpoint:
    """A running nginx; `with Endpoint(folder) as endpoint`."""

    def __init__(self, folder, delay_seconds=0):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.ports = {"h2": free_port(), "h1": free_port()}
        self.ca_file = self.folder / "ca.pem"
        self.issued = self.folder / "issued.log"
        self._make_certificate()
        delay = f"echo_sleep {delay_seconds};" if delay_seconds else ""
        configuration = CONFIGURATION.format(
            folder=self.folder, port_h2=self.ports["h2"], port_h1=self.ports["h1"], delay=delay)
        (self.folder / "nginx.conf").write_text(configuration)

    def url(self, version):
        return f"https://localhost:{self.ports[version]}/token"

    def __enter__(self):
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen([nginx, "-p", self.folder, "-c", self.folder / "nginx.conf"])
        measuring.wait_for(self._answers, 10, lambda: f"nginx answers: {self._errors()}", pause=0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def start_log(self):
        """Begins a new log of issued tokens and discards the old one."""
        self.flush_log()
        self.issued.unlink(missing_ok=True)
        self.process.send_signal(subprocess.signal.SIGUSR1)
        measuring.wait_for(self.issued.exists, 10, lambda: f"nginx opens a new log: {self._errors()}", pause=0.01)

    @staticmethod
    def flush_log():
        """Waits until nginx has written its buffer, which it does five times a second."""
        time.sleep(0.5)

    def _answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.ports["h2"])) == 0

    def _errors(self):
        log = self.folder / "error.log"
        return log.read_text() if log.exists() else "it wrote no log"

    def _make_certificate(self):
        """A certificate authority of a day, and a certificate for localhost."""
        def run(*words):
            return subprocess.run(["openssl", *words], check=True, cwd=self.folder, capture_output=True)

        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "1", "-subj", "/CN=benchmark CA")
        run("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
        (self.folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "server.pem", "-days", "1", "-extfile", "names")


def read_log(path):
    """The answers in order: the time in seconds, the grant's number, the id of the request."""
    with open(path) as log:
        for line in log:
            instant, grant, request = line.split()
            yield float(instant), grant, request


def span(path):
    """The number of answers in the log, and the seconds between the first and the last."""
    first, last, count = None, None, 0
    with open(path, "rb") as log:
        for line in log:
            last = line
            first = first or line
            count += 1
    if count == 0:
        return 0, 0.0
    return count, float(last.split()[0]) - float(first.split()[0])
