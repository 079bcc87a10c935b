"""A token endpoint behind nginx that speaks HTTP/1.1 only: each request opens a connection, which resumes a TLS
session."""

import collections

from nginx import Nginx
from ports import free_port
from tls import Authority

GRANTS = 300
SITE = """
log_format sessions '$ssl_session_reused';
server {{
    access_log {folder}/sessions.log sessions;
    listen 127.0.0.1:{port} ssl;
    server_name localhost;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols {protocol};
    ssl_session_cache shared:sessions:1m;
    location / {{ proxy_pass {sandbox}; }}
}}
"""


def scenario(fixture):
    fixture.generate_keys()
    fixture.import_grants(fixture.sandbox.create(GRANTS))
    authority = Authority(fixture.folder)
    counts = [resumed(fixture, authority, protocol) for protocol in ("TLSv1.2", "TLSv1.3")]
    return f"resumed of {GRANTS} connections: {counts[0]} over TLS 1.2, {counts[1]} over TLS 1.3"


def resumed(fixture, authority, protocol):
    """Refreshes the grants over one version of TLS; returns how many connections resumed a session."""
    folder = fixture.folder / protocol
    folder.mkdir()
    certificate, key = authority.issue("endpoint")
    port = free_port()
    values = dict(folder=folder, port=port, certificate=certificate, key=key, protocol=protocol)
    nginx = Nginx(folder, SITE.format(sandbox=fixture.sandbox.url, **values), port)
    try:
        fixture.set_due(0)
        fixture.run("--run-once", "--ca-file", authority.file, "--token-endpoint", f"https://localhost:{port}/token")
    finally:
        nginx.stop()
    counts = collections.Counter((folder / "sessions.log").read_text().split())
    assert counts.total() == GRANTS, f"{protocol}: each grant causes one request"
    # With TLS 1.3, concurrent transfers replace each other's tickets, so fewer are resumed.
    assert counts["r"] >= GRANTS // 4, f"{protocol}: a quarter of the connections resume a session"
    return counts["r"]
