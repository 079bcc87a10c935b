"""Functions on other machines: nginx serves TLS in front of the internal listener's unix socket."""

import contextlib
import http.client
import threading
import urllib.parse

import mail
from accounts import SERVICE_KEY, Accounts, Listener, user_token
from nginx import Nginx
from scan import check_refused_methods, check_server
from tls import Authority, TLSListener


def scenario(fixture):
    authority = Authority(fixture.folder)
    certificate, key = authority.issue("nginx")
    accounts = Accounts(fixture)
    nginx = Nginx.deployed(
        fixture, "refresh-worker-internal.conf",
        {
            "listen 9443 ssl;": "listen 127.0.0.1:{port} ssl;",
            "    listen [::]:9443 ssl;\n": "",
            "/etc/letsencrypt/live/worker.internal.example.com/fullchain.pem": certificate,
            "/etc/letsencrypt/live/worker.internal.example.com/privkey.pem": key,
            "/run/refresh-worker/internal.sock": accounts.socket,
        },
    )
    try:
        play(fixture, accounts, authority, nginx)
    finally:
        nginx.stop()
    accounts.close()
    return ""


def play(fixture, accounts, authority, nginx):
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    accounts.connect(grant, user_token("ada")).expect(201)
    gmail = mail.Gmail(fixture.sandbox)
    environment = {
        "GMAIL": gmail.url, "WORKER_URL": f"https://localhost:{nginx.port}", "WORKER_CREDENTIAL": SERVICE_KEY,
        "SSL_CERT_FILE": authority.file,
    }
    accounts.expire("ada")
    messages = mail.fetch("ada", **environment)
    assert messages == ["message-of-ada@gmail.com"], "the function reads the user's mail"
    assert "401" in mail.fetch("ada", **{**environment, "WORKER_CREDENTIAL": "wrong"}), "a wrong credential gets 401"
    gmail.shutdown()

    # Routes that need no credential on the unix socket are not reachable through nginx, however the path is written.
    outside = TLSListener(nginx.port, authority)
    outside.get("/healthz").expect(200)
    outside.get("/", SERVICE_KEY).expect(404)
    for path in ("/healthz", "/", "/v1/grants/ada/token"):
        check_server(outside.get(path), f"GET {path}", tls=True)
        check_refused_methods(outside, path, tls=True)
    for path in ("/status", "/metrics", "/readyz"):
        accounts.internal.get(path).expect(200)
        for written in (path, "/" + path, f"/v1/grants/../..{path}", f"/v1/grants/%2e%2e/%2e%2e{path}",
                        f"/v1/grants/..%2f..%2f{path[1:]}", "/%73" + path[2:] if path == "/status" else path + "?x"):
            answer = outside.get(written, SERVICE_KEY)
            assert answer.status in (400, 404), f"`{written}` is refused"

    # A forced refresh, a slow one, and a path with an encoded slash are passed unchanged.
    accounts.connect(fixture.sandbox.create(email="eva@gmail.com")[0], user_token("eva")).expect(201)
    token = accounts.vend("eva").expect(200).json["access_token"]
    renewed = outside.post("/v1/grants/eva/token/refresh", {"access_token": token}, SERVICE_KEY).expect(200).json
    assert renewed["access_token"] != token, "a rejected token is replaced"
    form = {"grant_type": "refresh_token", "refresh_token": "eva", "client_id": "mailer", "client_secret": SERVICE_KEY}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    described = outside.get("/.well-known/oauth-authorization-server").expect(200).json["token_endpoint"]
    assert described == f"https://localhost:{nginx.port}/oauth2/token", "a library finds the endpoint through nginx"
    answer = outside.call("POST", "/oauth2/token", urllib.parse.urlencode(form), headers=headers).expect(200)
    assert answer.json["access_token"] == renewed["access_token"], "an OAuth library gets the token through nginx"
    other = fixture.sandbox.create(email="b@gmail.com")[0]
    accounts.connect(other, user_token("team/b")).expect(201)
    outside.get("/v1/grants/team%2Fb/token", SERVICE_KEY).expect(200)
    fixture.sandbox.call("/control/grants/set", {"email": "b@gmail.com", "hold": True})
    accounts.expire("team/b")
    answers = []
    caller = threading.Thread(target=lambda: answers.append(outside.get("/v1/grants/team%2Fb/token", SERVICE_KEY)))
    caller.start()
    fixture.sandbox.call("/control/wait?holding=1")
    fixture.sandbox.call("/control/release", {"email": "b@gmail.com"})
    caller.join(60)
    assert answers and answers[0].status == 200, "the slow refresh succeeds"

    # Plain HTTP is not forwarded.
    plain = Listener(nginx.port)
    with contextlib.suppress(http.client.HTTPException, ConnectionError):
        assert plain.get("/v1/grants/ada/token", SERVICE_KEY).status == 400, "plain HTTP is refused"
    files = [path for path in fixture.folder.glob("nginx-*/**/*") if path.is_file()]
    assert not files, "nginx writes no files"
