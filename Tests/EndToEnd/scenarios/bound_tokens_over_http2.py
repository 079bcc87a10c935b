"""Proofs and nonces of bound refresh tokens over HTTP/2, which Google speaks: nginx carries it to the sandbox."""

from accounts import Accounts
from bound_tokens import bound_to, challenges, refresh
from harness import CLIENT
from nginx import Nginx
from ports import free_port
from server_auth_code import SECRET, SERVER, App
from tls import Authority

SITE = """
log_format protocols '$server_protocol $http_dpop';
server {{
    access_log {folder}/protocols.log protocols;
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    location / {{
        proxy_pass {sandbox};
        proxy_set_header Host $http_host;
    }}
}}
"""


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600, clients=[CLIENT, SERVER])
    authority = Authority(fixture.folder)
    certificate, key = authority.issue("google")
    port = free_port()
    site = SITE.format(folder=fixture.folder, port=port, certificate=certificate, key=key, sandbox=sandbox.url)
    nginx = Nginx(fixture.folder, site, port)
    accounts = Accounts(fixture, start=False)
    secrets = accounts.write("client-secrets", f"{SERVER} {SECRET}")
    fixture.run("keys", "add-binding")
    accounts.extra += ["--server-client-id", SERVER, "--client-secret-file", secrets, "--bind-tokens"]
    usual = fixture.arguments

    def arguments(*extra):
        url = f"https://localhost:{port}/token"
        return [url if one == sandbox.url + "/token" else one for one in usual(*extra)]

    fixture.arguments = arguments
    accounts.extra += ["--ca-file", authority.file]
    accounts.start()
    app = App(accounts)
    grant = app.code("ada@example.com")
    app.send("ada", grant).expect(201)
    assert bound_to(accounts, grant), "the refresh token is bound"
    refresh(accounts, "ada")
    sandbox.call("/control/expire-nonces", {})
    refresh(accounts, "ada")
    assert challenges(accounts) == 3, "an exchange, a first refresh and an expired nonce were challenged"
    assert sandbox.stats()["proofs"] == 3, "each was accepted with its nonce"
    accounts.close()
    nginx.stop()
    lines = (fixture.folder / "protocols.log").read_text().splitlines()
    assert len(lines) == 6 and all(line.startswith("HTTP/2.0 ey") for line in lines), "all proofs came over HTTP/2"
    return ""
