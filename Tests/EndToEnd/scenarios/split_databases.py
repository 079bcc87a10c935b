"""Four small stores instead of a large one: two databases, and two schemas of a third.

Each has its own worker, and users who ask for tokens all the time. `store copy` moves one schema to another server, and
the other three stores go on.
"""

import datetime
import hashlib
import json
import signal
import subprocess
import threading
import time

from accounts import SERVICE_KEY, Listener
from expectations import wait_for
from postgres_server import Server

STORE = "postgres"

# The users of each store. Their tokens are refreshed about four times a minute.
USERS = 60
LIFETIME = 20
# Users of the store that moves whose tokens live long: its copy takes a while.
QUIET = 4000
# What each of the others does while the copy stands still.
REFRESHES = 20
ANSWERS = 100
DATABASES = ["amber", "birch", "shared"]


def scenario(fixture):
    (fixture.folder / "other").mkdir()
    other = Server(fixture.folder / "other")
    stores = []
    try:
        return split(fixture, other, stores)
    finally:
        for store in stores:
            store.calls.stop()
        other.stop()


def split(fixture, other, stores):
    began = time.monotonic()
    fixture.generate_keys()
    fixture.sandbox.settings(strict_rotation=True, latency_ms=20)
    for database in DATABASES:
        fixture.server.execute(f"CREATE DATABASE {database}")
    other.execute("CREATE DATABASE shared")

    def url(database):
        return fixture.server.url.replace("/postgres?", f"/{database}?")

    stores += [
        Store(fixture, "amber", url("amber")), Store(fixture, "birch", url("birch")),
        Store(fixture, "cedar", url("shared"), schema="cedar"), Store(fixture, "maple", url("shared"), schema="maple"),
    ]
    *others, moving = stores
    fixture.sandbox.settings(lifetime=3600)
    moving.add(QUIET, "quiet")
    fixture.sandbox.settings(lifetime=LIFETIME)
    for store in stores:
        store.add(USERS, "user")
        store.start()
    for store in stores:
        store.calls.start()
    wait_for(lambda: all(store.refreshes() >= REFRESHES for store in stores), 60, "each worker refreshes")
    dumps(fixture, moving)

    pause = move(fixture, moving, other, others)
    wait_for(lambda: moving.refreshes() >= REFRESHES, 60, "the moved store is refreshed")
    answered = moving.calls.answered
    wait_for(lambda: moving.calls.answered >= answered + ANSWERS, 60, "the moved store's users get tokens")
    for store in stores:
        store.calls.stop()
        store.worker.stop()
    for store in others:
        assert store.calls.failures == [], f"each user of {store.name} got a token"
    verify(fixture, stores)
    checked = moving.run("doctor", expect=None).stdout
    assert "schema=maple" in checked and f"{USERS + QUIET} grants" in checked, "the doctor checks the schema"
    gaps = max(store.longest_gap() for store in others)
    return (
        f"{sum(len(store.users) for store in stores)} users, {fixture.sandbox.stats()['by_route']['token']} refreshes, "
        f"one store away for {pause:.1f} s, at most {gaps:.1f} s without a refresh of another one, "
        f"{time.monotonic() - began:.0f} s in all"
    )


class Store:
    """One of the stores, with its worker and its users."""

    def __init__(self, fixture, name, url, schema="refresh_worker"):
        self.fixture = fixture
        self.name = name
        self.schema = schema
        self.url = url
        self.folder = fixture.folder / name
        self.folder.mkdir(mode=0o700)
        self.workers = []
        self.users = []
        self.internal = Listener(self.folder / "internal.sock")
        self.calls = Calls(self)
        service = {
            "name": "mailer", "credential_sha256": hashlib.sha256(SERVICE_KEY.encode()).hexdigest(), "scopes": ["*"],
            "users": ["*"],
        }
        self.services = self.folder / "services.json"
        self.services.write_text(json.dumps({"services": [service]}))
        self.services.chmod(0o600)

    @property
    def address(self):
        return self.url if self.schema == "refresh_worker" else f"{self.url}&schema={self.schema}"

    def run(self, *words, **more):
        self.fixture.database = self.address
        return self.fixture.run(*words, **more)

    def add(self, count, kind):
        """Imports grants, whose access tokens are those of the sandbox."""
        grants = self.fixture.sandbox.call("/control/grants", {"count": count, "prefix": f"{self.name}-{kind}"})
        self.fixture.database = self.address
        self.fixture.import_grants(grants)
        self.users += [grant["email"] for grant in grants]

    def start(self):
        self.fixture.database = self.address
        self.worker = self.fixture.start(
            "--listen-internal", f"unix:{self.internal.address}", "--services-file", self.services,
            # Beside the key ring, the workers of two databases would find each other's spill files.
            environment={"STATE_DIRECTORY": str(self.folder)},
        )
        self.workers.append(self.worker)
        self.worker.wait_started()
        wait_for(self.internal.is_ready, 60, f"the listener of {self.name} answers")

    def events(self, outcome="refreshed"):
        return [event for worker in self.workers for event in worker.events("refresh", outcome=outcome)]

    def refreshes(self):
        """How often the running worker has refreshed."""
        return len(self.worker.events("refresh", outcome="refreshed"))

    def longest_gap(self):
        times = sorted(datetime.datetime.fromisoformat(event["time"]).timestamp() for event in self.events())
        return max(after - before for before, after in zip(times, times[1:], strict=False))

    def rows(self, query):
        """The rows of a query whose tables are in this store's schema."""
        url, self.fixture.server.url = self.fixture.server.url, self.url
        try:
            return self.fixture.server.query(query.format(schema=f'"{self.schema}"'))
        finally:
            self.fixture.server.url = url


class Calls:
    """The users of a store: each asks for a token, one after the other, until `stop`."""

    def __init__(self, store):
        self.store = store
        self.answered = 0
        self.failures = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        # The quiet ones were added first.
        self.users = self.store.users[-USERS:]
        self.thread.start()

    def run(self):
        while True:
            for user in self.users:
                if self.ended.wait(0.02):
                    return
                try:
                    answer = self.store.internal.get(f"/v1/grants/{user}/token?min_ttl=1", SERVICE_KEY)
                except OSError as error:
                    self.failures.append((user, f"{error}"))
                    continue
                if answer.status == 200:
                    self.answered += 1
                else:
                    self.failures.append((user, answer.body))

    def stop(self):
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()


def dumps(fixture, store):
    """The command that `backup` names makes a dump of this store's schema alone."""
    file = fixture.folder / "dump"
    told = store.run("backup", file, expect=78).stderr
    line = next(line for line in told.splitlines() if "run: pg_dump" in line).split("run: ")[1]
    subprocess.run(line, shell=True, check=True, capture_output=True)
    listing = subprocess.run(["pg_restore", "--list", file], check=True, capture_output=True, text=True).stdout
    assert "TABLE maple grants " in listing and "cedar" not in listing, "the dump has the schema's tables alone"


def move(fixture, moving, other, others):
    """Moves a store while the others go on, and returns the seconds without its worker."""
    moving.worker.stop()
    stopped = time.monotonic()
    former = moving.address
    words = ["store", "copy", "--from", former, "--to", former.replace(str(fixture.server.folder), str(other.folder))]
    copy = subprocess.Popen(
        fixture.arguments(*words), env=fixture.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    mark = "SELECT value FROM {schema}.meta WHERE key = 'moved_to'"
    wait_for(lambda: moving.rows(mark) or copy.poll() is not None, 60, "the store is marked as moved", pause=0)
    # In the middle of its work, whatever it holds there.
    copy.send_signal(signal.SIGSTOP)
    assert copy.poll() is None, f"the copy is under way; it wrote: {copy.stdout.read()}"
    before = {store.name: (store.refreshes(), store.calls.answered) for store in others}

    def go_on():
        return all(
            store.refreshes() >= before[store.name][0] + REFRESHES
            and store.calls.answered >= before[store.name][1] + ANSWERS
            for store in others
        )

    wait_for(go_on, 60, "the other stores go on while one is moved")
    copy.send_signal(signal.SIGCONT)
    output, _ = copy.communicate(timeout=60)
    if copy.returncode != 0:
        # It has stood still for longer than a call of the store can take.
        output = fixture.run(*words).stdout
    assert "both databases have the same content" in output, "the copy is complete"
    refused = moving.run("--run-once", expect=78).stderr
    assert "was moved to PostgreSQL at" in refused and "schema=maple" in refused, "the former schema is refused"
    for store in others:
        assert store.rows(mark) == [], f"{store.name} is not marked as moved"
    moving.url = moving.url.replace(str(fixture.server.folder), str(other.folder))
    moving.start()
    return time.monotonic() - stopped


def verify(fixture, stores):
    """No token is lost, no grant is refreshed twice at once, and nobody is disconnected."""
    stats = fixture.sandbox.stats(grants=True)
    assert stats["concurrent_same_grant"] == 0, "no two requests for one grant run at once"
    assert stats["by_answer"].get("invalid_grant", 0) == 0, "no spent refresh token is sent"
    stored = sum(len(store.events()) for store in stores)
    assert stats["by_answer"]["ok"] == stored, "each answer is stored once"
    issued = {grant["email"]: grant["current_refresh_token"] for grant in stats["grants"]}
    kept = {}
    for store in stores:
        states = store.rows("SELECT state, count(*) AS n FROM {schema}.grants GROUP BY state")
        assert states == [{"state": "active", "n": len(store.users)}], f"every grant of {store.name} is active"
        ended = store.rows("SELECT * FROM {schema}.grant_events WHERE to_state NOT IN ('active', 'retrying')")
        assert ended == [], f"no grant of {store.name} was ever ended"
        lines = store.run("grants", "export", "--plaintext").stdout.splitlines()
        tokens = {line["user_id"]: line["refresh_token"] for line in map(json.loads, lines)}
        assert sorted(tokens) == sorted(store.users), f"{store.name} has its own users alone"
        kept |= tokens
    assert kept == issued, "each stored token is the newest that was issued"
    for store in stores:
        leftovers = [path.name for path in store.folder.iterdir() if ".unsaved-" in path.name]
        assert leftovers == [], f"{store.name} leaves no spill file"
