"""A thousand signed-in users of two former backends move to the worker, by the commands of docs/moving.md, and back.

Their phones call continuously, and so do the browsers of web users. Nobody is signed out, no call is refused, and no
grant is refreshed late.
"""

import os
import re
import shlex
import subprocess
import time

from accounts import Accounts, Listener
from expectations import wait_for
from former import ENGINE_SECRET, PAYPULSE_SECRET, Engine, Former, PayPulse, claims_of
from harness import CLIENT, ROOT, WORKER, Server
from nginx import PROGRAM, Nginx
from observer import Observer
from phones import Crowd, EnginePhone, PayPulsePhone, WebUser

EACH = 500
LATE = 10
WEB = 20

PRELUDE = """
set -euo pipefail
refresh-worker() { eval '"$WORKER" "$@"' "$SETTINGS"; }
export -f refresh-worker
systemctl() {
    case "$*" in
    'enable --now refresh-worker') touch worker-was-started ;;
    'reload nginx') nginx -s reload ;;
    *) echo "no systemctl $*" >&2; return 1 ;;
    esac
}
nginx() { "$NGINX" -p "$FOLDER" -c "$FOLDER/nginx.conf" -e "$FOLDER/nginx.log" "$@"; }
"""

# The aws program, as far as the document and the script use it; it asks the fake PayPulse.
AWS = r"""#!/bin/sh
ask() { curl -sS --fail -H "X-Amz-Target: secretsmanager.$1" --data-binary @- "$FORMER/"; echo; }
case "$1 $2" in
'dynamodb scan')
    if [ -e scan-fails ]; then echo '[]'; exit 254; fi
    curl -sS --fail "$FORMER/scan?name=UserID&name=Email&name=Name&name=CreatedOn&name=CreatedAt" ;;
'secretsmanager list-secrets')
    jq -n --arg prefix "${4#Key=name,Values=}" '{Filters: [{Key: "name", Values: [$prefix]}]}' |
        ask ListSecrets | jq -r '.SecretList[].Name' ;;
'secretsmanager get-secret-value') jq -n --arg id "$4" '{SecretId: $id}' | ask GetSecretValue ;;
'secretsmanager batch-get-secret-value')
    shift 5
    jq -n '{SecretIdList: $ARGS.positional}' --args "$@" | ask BatchGetSecretValue ;;
'secretsmanager put-secret-value')
    jq -n --arg id "$4" --rawfile text "${6#file://}" '{SecretId: $id, SecretString: $text}' | ask PutSecretValue ;;
*) echo "no aws $*" >&2; exit 1 ;;
esac
"""


class Shell:
    """The shell in which an operator runs the commands for one backend."""

    def __init__(self, name, fixture, environment, settings):
        self.name = name
        folder = fixture.folder / f"operator-{name}"
        folder.mkdir(mode=0o700)
        programs = folder / "bin"
        programs.mkdir()
        (programs / "aws").write_text(AWS)
        (programs / "aws").chmod(0o755)
        self.output = folder / "output"
        self.folder = folder
        self.process = subprocess.Popen(
            ["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=open(self.output, "wb"), stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment, "PATH": f"{programs}:{os.environ['PATH']}"},
        )
        self.count = 0
        self.type(PRELUDE + f"export SETTINGS={shlex.quote(shlex.join(settings))}\n")

    def type(self, text):
        """Runs commands to their end, and returns their output."""
        self.count += 1
        marker = f"== done {self.count} =="
        start = self.output.stat().st_size
        self.process.stdin.write(f"{text}\necho '{marker}'\n")
        self.process.stdin.flush()
        wait_for(lambda: marker in self.read(start) or self.process.poll() is not None, 300, f"{text[-200:]} has ended")
        assert self.process.poll() is None, f"the shell runs; it wrote: {self.read(start)[-2000:]}"
        return self.read(start).replace(f"{marker}\n", "")

    def read(self, start):
        return self.output.read_bytes()[start:].decode()

    def follow(self, section):
        """Runs a block of commands of the document."""
        text = (ROOT / "docs" / "moving.md").read_text()
        blocks = re.findall(rf"^```sh {self.name} {section}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        assert len(blocks) == 1, f"docs/moving.md has one block '{self.name} {section}'"
        script = ROOT / "deploy" / "import-from-aws"
        return self.type(blocks[0].replace("/usr/local/share/doc/refresh-worker/import-from-aws", str(script)))

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def proxy_before_the_move(fixture, former, worker):
    """The proxy of the document, without TLS; every line of its table says `former`."""
    return Nginx.deployed(
        fixture, "refresh-worker-app.conf",
        {
            "listen 443 ssl;": "listen 127.0.0.1:{port};",
            "    listen [::]:443 ssl;\n": "",
            "    ssl_certificate /etc/letsencrypt/live/api.example.com/fullchain.pem;\n": "",
            "    ssl_certificate_key /etc/letsencrypt/live/api.example.com/privkey.pem;\n": "",
            "https://former-backend.example.com": f"http://127.0.0.1:{former}",
            "http://127.0.0.1:8080": f"http://127.0.0.1:{worker}",
            " worker;": " former;",
        },
    )


def scenario(fixture):
    fixture.folder.chmod(0o755)
    (fixture.folder / "former").mkdir()
    database = Server(fixture.folder / "former")
    crowd = Crowd()
    closing = [crowd.stop]
    try:
        return move(fixture, database, crowd, closing)
    finally:
        for close in closing:
            close()
        database.stop()


def move(fixture, database, crowd, closing):
    paypulse, engine = PayPulse(CLIENT), Engine(database)
    former = Former(paypulse, engine)
    accounts = Accounts(
        fixture, "--trusted-proxy", "127.0.0.1",
        "--accept-former-refresh-tokens-until", time.strftime("%Y-%m-%d", time.gmtime(time.time() + 8 * 86_400)),
        start=False,
    )
    accounts.write("jwt", f"{ENGINE_SECRET}\n{PAYPULSE_SECRET}")
    proxy = proxy_before_the_move(fixture, former.port, accounts.port)
    closing.append(proxy.stop)

    # The former backends with all their signed-in users.
    grants = []
    for lifetime, count in [(-600, EACH // 3), (240, EACH // 3), (3000, EACH + LATE - 2 * (EACH // 3))]:
        fixture.sandbox.settings(lifetime=lifetime)
        grants += fixture.sandbox.call("/control/grants", {"count": count, "prefix": f"life{lifetime}"})
    fixture.sandbox.settings(lifetime=3599)
    payers = [paypulse.sign_up(number) for number in range(EACH)]
    for user, grant in zip(payers, grants[:EACH], strict=True):
        paypulse.connect(user, grant)
    readers = engine.sign_up(*range(EACH))
    for number, user in enumerate(payers):
        crowd.add(payer(number, proxy.port, paypulse, user))
    for number, user in enumerate(readers):
        crowd.add(reader(EACH + number, proxy.port, engine, user))
    for number, user in enumerate(readers[:WEB]):
        crowd.add(WebUser(3 * EACH + number, proxy.port, profile_of(engine, user)))
    # These users have no phone any more, and delete their accounts later.
    leaving = [paypulse.sign_up(10_000 + number) for number in range(3)]
    crowd.start()
    crowd.wait("the former backends serve it")

    environment = {
        "WORKER": str(WORKER), "NGINX": PROGRAM, "FOLDER": str(fixture.folder), "FORMER": former.url,
        "FORMER_DATABASE_URL": database.url,
    }
    settings = [*fixture.arguments()[1:], *map(str, accounts.extra)]
    shells = {name: Shell(name, fixture, environment, settings) for name in ["paypulse", "comprehension-engine"]}
    closing.extend(shell.close for shell in shells.values())
    amazon, server = shells.values()

    # Users and grants are copied while the phones keep calling.
    amazon.follow("prepare")
    assert (amazon.folder / "worker-was-started").exists(), "the document starts the worker"
    worker = accounts.start()
    output = amazon.follow("users")
    assert f"{EACH + 3} read: {EACH + 3} stored, 0 completed, 0 replaced, 0 kept, 0 unchanged, 0 bad" in output, (
        "the import of users stores all of them"
    )
    # This user signs up between the scan and the copy of the secrets, and deletes the account before the second scan.
    passing = paypulse.sign_up(10_010)
    paypulse.connect(passing, fixture.sandbox.call("/control/grants", {"count": 1, "prefix": "passing"})[0])
    leaving.append(passing)
    imported_at = time.time()
    output = amazon.follow("grants")
    assert f"{EACH + 1} secrets: {EACH + 1} stored, 0 replaced, 0 kept, 0 bad" in output, (
        "the import of secrets stores all of them"
    )
    lasting = {
        user for user, grant in zip(payers, grants[:EACH], strict=True) if grant["expires_at"] > imported_at + 60
    }
    assert len(lasting) >= EACH // 3, "a third of the grants have a valid token"
    observer = Observer(fixture, lambda user: user in lasting)
    observer.start()
    output = server.follow("users")
    assert f"{EACH} read: {EACH} stored" in output, "the import of PayPulse's users stores all of them"

    def now():
        return int(time.time() * 1000)

    wait_for(
        lambda: all(row["access_expires_at"] > now() for row in fixture.rows("SELECT access_expires_at FROM grants")),
        120, "each grant has a valid access token",
    )
    lasting.update(payers)
    crowd.check("while users and grants were copied")

    # A user connects after the copy, and the last look before the switch finds the grant.
    newcomer = paypulse.sign_up(10_020)
    paypulse.connect(newcomer, fixture.sandbox.call("/control/grants", {"count": 1, "prefix": "newcomer"})[0])
    leaving.append(newcomer)
    output = amazon.follow("new-grants")
    assert f"reading 1 of {EACH + 2} secrets" in output, "only the new grant is read"
    assert "1 secrets: 1 stored, 0 replaced" in output, "the new grant is stored"

    # The former backends remain in use.
    late_payers = [paypulse.sign_up(EACH + number) for number in range(LATE)]
    for user, grant in zip(late_payers, grants[EACH:], strict=True):
        paypulse.connect(user, grant)
    late_readers = engine.sign_up(*range(EACH, EACH + LATE))
    for user in leaving:
        paypulse.delete(user)
    late = []
    for number, user in enumerate(late_payers):
        late.append(payer(2 * EACH + number, proxy.port, paypulse, user))
    for number, user in enumerate(late_readers):
        late.append(reader(2 * EACH + LATE + number, proxy.port, engine, user))
        # A new user's access token is valid for half an hour, and this phone does not restart during the switch.
        late[-1].pair = engine.pair(user, 1800)
        late[-1].may_restart = False
    for phone in late:
        phone.is_copied = False
        crowd.add(phone)
    crowd.wait("the former backends serve it, late users too")

    # The switch. Between the steps, users start an app, sign up on the web, or connect another account.
    proxy.write(re.sub(r'(" +)former;', r"\1worker;", proxy.text))
    server.follow("switch")
    starting, web = engine.sign_up(20_000, 20_001)
    restart = {"refresh_token": engine.pair(starting)["refresh_token"]}
    answer = accounts.public.post("/api/auth/refresh", restart).expect(503)
    assert answer.headers["retry-after"] == "60", "a user who is not copied yet is asked to wait"
    web_phone = sign_in(accounts, engine, web)
    split = web_phone.call("GET", "/api/auth/me", web_phone.pair["access_token"]).json["id"]
    assert split != web, "before the import, the worker does not know the id of the backend"
    backend = Listener(former.port)
    backend.get("/api/conversations", web_phone.pair["access_token"]).expect(200)
    other = fixture.sandbox.call("/control/grants", {"count": 1, "prefix": "other"})[0]
    answer = accounts.connect(other, paypulse.login(payers[0])).expect(201)
    assert answer.json["data"]["account_switch"], "the user connects another account here"
    paypulse.connect(payers[0], grants[0])
    output = server.follow("again")
    assert f"user '{web}' is also user '{split}', who signed in here: joined" in output, "both are one user"
    accounts.public.post("/api/auth/refresh", restart).expect(200)
    web_phone.fetch("/api/auth/me")
    backend.get("/api/conversations", web_phone.pair["access_token"]).expect(200)
    later = engine.sign_up(20_002)[0]
    server.follow("again")
    sign_in(accounts, engine, later).fetch("/api/auth/me")
    output = server.follow("again")
    assert f"{EACH + LATE + 3} read: " in output and ", 0 bad" in output, (
        "the later import reads all users of the former backend"
    )
    (amazon.folder / "scan-fails").touch()
    for section in ["again", "gone", "deleted"]:
        output = amazon.follow(section)
    assert "nobody was deleted" in output, "a second scan that fails deletes nobody"
    assert fixture.states() == {"active": EACH + 2}, "a second scan that fails ends no grant"
    (amazon.folder / "scan-fails").unlink()
    output = amazon.follow("again")
    assert f"{EACH + LATE} read: " in output and ", 0 bad" in output, "the later import reads all users of PayPulse"
    assert f"{LATE} secrets: {LATE} stored, 0 replaced" in output, "the later import stores the late secrets"
    assert f"{EACH + LATE} secrets: 0 stored, 0 replaced" in output, "the last import finds nothing newer"
    assert fixture.rows("SELECT email FROM grants WHERE user_id = ?", payers[0]) == [{"email": other["email"]}], (
        "what the user did here wins over the secret that a function has refreshed"
    )
    for phone in late:
        phone.is_copied = phone.may_restart = True
    output = amazon.follow("gone")
    assert f"5 of {EACH + 5} users have deleted their account" in output, "the document counts those who are gone"
    output = amazon.follow("deleted")
    assert output.count("deleted user") == len(leaving), "each account that is gone is deleted here"
    for user in leaving:
        stored = fixture.rows("SELECT email, deleted_until FROM users WHERE user_id = ?", user)
        assert [row["email"] for row in stored] == [None], "a deleted user's data is gone"
        assert stored[0]["deleted_until"], "the deletion is remembered"
    assert (amazon.folder / "ids-after").read_text().split() == sorted([*payers, *late_payers]), (
        "the later scan finds every id"
    )
    crowd.wait("the worker serves it", rounds=2, condition=has_session_of_worker)
    counts = dict(former.counts)
    crowd.wait("the worker serves it alone")
    for path in ["/v1/user/me", "/api/auth/me", "/api/auth/refresh"]:
        assert former.counts[path] == counts[path], f"the former backend is not asked for {path}"

    # The counts.
    output = amazon.follow("check")
    expected = f"{EACH + LATE} read: 0 to store, 0 to complete, 0 to replace, 0 to keep, {EACH + LATE} unchanged"
    assert expected in output, "a repeated import changes no user"
    assert f"reading 0 of {EACH + LATE} secrets" in output and "0 secrets: 0 to store, 0 to replace" in output, \
        "a repeated import changes no secret"
    output = server.follow("check")
    assert f"{EACH + LATE + 3} read: 0 to store, 0 to complete, " in output and ", 0 bad" in output, (
        "a repeated import changes no user of PayPulse"
    )
    assert fixture.states() == {"active": EACH + LATE, "disconnected": 2}, "every grant of a living user is active"
    late_by = observer.stop()
    assert not late_by, "no grant's token expires"

    # And back.
    amazon.follow("back")
    assert len(paypulse.secrets) == EACH + LATE + 1, "PayPulse has each user's secret"
    proxy.write(proxy.text)
    server.follow("switch")
    crowd.wait("the former backends serve it again", rounds=2)
    assert former.counts["/api/auth/me"] > counts["/api/auth/me"], (
        "after the way back, the former backend is asked again"
    )
    crowd.stop()
    crowd.check("in the end")
    worker.stop()
    calls = sum(phone.rounds for phone in crowd.phones)
    return f"{len(crowd.phones)} phones took {calls} rounds of calls; {len(grants)} grants, none late"


def payer(number, port, paypulse, user):
    row = paypulse.rows[user]
    profile = {
        "name": row["Name"], "email": row["Email"], "created_on": row["CreatedOn"], "gmail_account_connected": True,
    }
    return PayPulsePhone(number, port, paypulse.login(user), profile)


def reader(number, port, engine, user):
    return EnginePhone(number, port, engine.pair(user, number % 40 - 10), profile_of(engine, user))


def profile_of(engine, user):
    return {name: engine.rows[user][name] for name in ["id", "email", "name", "avatar_url", "is_active"]}


def sign_in(accounts, engine, user):
    """A phone on which the user has just signed in at the worker with Google."""
    row = engine.rows[user]
    grant = accounts.sandbox.create(email=row["email"], sub=row["google_id"], name=row["name"])[0]
    expected = {name: row[name] for name in ["id", "email", "name"]}
    return EnginePhone(3 * EACH, accounts.port, accounts.sign_in(grant), expected)


def has_session_of_worker(phone):
    return not isinstance(phone, EnginePhone) or "sid" in (claims_of(phone.pair["refresh_token"], ENGINE_SECRET) or {})
