"""One seeded database with a grant in each state, and what the commands show and change in it, as text and as JSON."""

import json
import time

from harness import CLIENT
from recording import record_events

OTHER = "999-other.apps.googleusercontent.com"
# Each grant's answer at Google, refreshed in this order by single passes, so that each run ends the same ones.
ANSWERS = {
    "ada": None,
    "revoked": "invalid_grant",
    "blocked": "admin_policy_enforced",
    "down": "http503",
    "asked": "invalid_rapt",
    "foreign": "unauthorized_client",
    "unlisted": "invalid_jwt",
    "garbled": "garbage200",
    "flawed": "empty_object200",
    "misconfigured": "invalid_client",
}
USERS = """
{"user_id":"ada","email":"ada@example.com","email_verified":true,"name":"Ada","created_on":"2025-01-31"}
{"user_id":"bare"}
{"user_id":"inactive","email":"inactive@example.com","is_active":false}
{"user_id":"bad","created_on":"yesterday"}
"""
MAPPED = """
{"UserID":"mapped","Email":"mapped@example.com","Name":"Mapped","CreatedOn":"2025-01-31","CreatedAt":"12:00:00"}
"""
# In this order; each is also run with --json if it has that option.
SHOWN = """
grants list | grants list --sort due --limit 2 | grants list --expired | grants list --state suspended
grants list --reason invalid_grant | grants list --email ADA@example.com | grants list --since 1h --sort since
grants list --client nobody | users list | users list --limit 1 | users list --state inactive | keys list
status | doctor | store clock | grants export | grants export --plaintext | notices replay --dry-run
"""
CHANGED = """
grants retry ada --dry-run | grants retry down | grants retry revoked | grants retry --state retrying
grants set-client --from 999-other.apps.googleusercontent.com --to CLIENT --dry-run
grants set-client --from 999-other.apps.googleusercontent.com --to CLIENT | token ada | token ada --scope drive
token revoked | token blocked | token tokenless | grants disconnect ada --dry-run | grants disconnect ada
grants disconnect ada | users delete bare --dry-run | users delete bare | users delete bare | users show bare
users forget inactive | users forget ada | keys rotate --dry-run | keys rotate | keys list | keys retire 00000000
grants list | users list | status
"""


def listed(commands):
    return [command.strip() for command in commands.strip().replace("\n", "|").split("|")]


class StoredGrants:
    """A database without a running worker, and the commands that an operator runs on it."""

    def __init__(self, fixture, recording, masked):
        self.fixture = fixture
        self.recording = recording
        self.masked = masked

    def record(self, command, words=None, stdin=None):
        words = words or [CLIENT if word == "CLIENT" else word for word in command.split()]
        result = self.fixture.run(*words, expect=None, stdin=stdin)
        shown = result.stdout
        if command.startswith(("grants list", "grants export")) and "--sort" not in command:
            # They are in the order of their ids, which are random.
            shown = "".join(sorted(shown.splitlines(keepends=True)))
        text = self.masked(f"exit code {result.returncode}\n", shown, result.stderr)
        self.recording.add(f"{self.fixture.store}$ refresh-worker {command}", text)

    def record_both(self, command):
        self.record(command)
        self.record(f"{command} --json")

    def record_imports(self):
        sandbox = self.fixture.sandbox
        sandbox.settings(clients=[CLIENT, OTHER], lifetime=3600)
        for user, preset in ANSWERS.items():
            grant = sandbox.create_expired(f"{user}@example.com")
            if preset:
                sandbox.change(grant, answer={"preset": preset})
            line = json.dumps(import_line(grant, user)) + "\n"
            self.record("grants import FILE", ["grants", "import", "-"], line)
            self.record("grants import FILE --json", ["grants", "import", "-", "--json"], line)
            self.record("--run-once", ["--run-once", "--metrics-log", self.fixture.folder / "run-once.jsonl"])
            self.postpone(user)
        tokenless = sandbox.create(email="tokenless@example.com")[0]
        line = json.dumps({**import_line(tokenless, "tokenless"), "refresh_token": None}) + "\n"
        self.record("grants import FILE", ["grants", "import", "-"], line)
        other = sandbox.create(email="other@example.com", client_id=OTHER)[0]
        line = json.dumps(import_line(other, "other")) + "\n"
        self.record("grants import FILE --client-id OTHER", ["grants", "import", "-", "--client-id", OTHER], line)
        again = sandbox.create(email="ada@example.com")[0]
        line = json.dumps(import_line(again, "ada")) + "\n"
        self.record("grants import FILE --replace --dry-run", ["grants", "import", "-", "--replace", "--dry-run"], line)
        self.record("users import FILE", ["users", "import", "-"], USERS)
        self.record("users import FILE --json", ["users", "import", "-", "--json"], USERS)
        self.record("users import FILE --map paypulse", ["users", "import", "-", "--map", "paypulse"], MAPPED)

    def postpone(self, user):
        """Moves the next try behind the run, each user's behind that of the one before."""
        if self.fixture.grants()[user]["due_at"] is not None:
            hours = 1 + list(ANSWERS).index(user)
            self.fixture.set_due(int(time.time() * 1000) + hours * 3_600_000, user)

    def record_commands(self):
        for command in listed(SHOWN):
            self.record_both(command)
        for user in [*ANSWERS, "tokenless", "other", "nobody"]:
            for command in (f"grants show {user}", f"grants history {user}"):
                self.record_both(command)
        for user in ["ada", "inactive", "mapped", "nobody"]:
            self.record_both(f"users show {user}")
        for command in listed(CHANGED):
            self.record_both(command)

    def record_throttling(self):
        """Google throttles the second client: at the end, because its pace recovers with each second."""
        grant = self.fixture.sandbox.create_expired("throttled@example.com", client_id=OTHER)
        self.fixture.sandbox.change(grant, answer={"preset": "429_retry_after"})
        line = json.dumps(import_line(grant, "throttled")) + "\n"
        self.record("grants import FILE --client-id OTHER", ["grants", "import", "-", "--client-id", OTHER], line)
        words = ["--run-once", "--client-id", OTHER, "--metrics-log", self.fixture.folder / "run-once.jsonl"]
        self.record("--run-once --client-id OTHER", words)
        self.record_both("grants show throttled")

    def record_copies(self):
        """Copies of the database: a backup, and one that another store has."""
        place = self.fixture.folder
        self.record("backup COPY", ["backup", place / "backup"])
        copy = place / "copy.sqlite"
        words = ["store", "copy", "--from", self.fixture.database, "--to", copy]
        self.record("store copy --from DATABASE --to COPY", words)
        self.record("store copy --from DATABASE --to COPY --json", [*words, "--json"])


def import_line(grant, user):
    return {
        "user_id": user,
        "access_token": grant["access_token"],
        "refresh_token": grant["refresh_token"],
        "expires_at": grant["expires_at"],
        "scope": grant["scope"],
        "google_user_id": grant["sub"],
        "google_email": grant["email"],
        "client_id": grant["client_id"],
    }


def record(fixture, recording, masked):
    fixture.generate_keys()
    stored = StoredGrants(fixture, recording, masked)
    stored.record_imports()
    stored.record_commands()
    stored.record_throttling()
    if fixture.store == "sqlite":
        stored.record_copies()
    events = [json.loads(line) for line in (fixture.folder / "run-once.jsonl").read_text().splitlines()]
    record_events(f"single passes on {fixture.store}", events, recording)
