"""Help, wrong command lines, wrong settings, and wrong files: what the program writes, and its exit code."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from recording import as_lines, masked

CLIENT = "1-a.apps.googleusercontent.com"
GRANT = '{"user_id":"1","refresh_token":"1//a","access_token":"ya29.a","expires_at":"2026-01-01T00:00:00Z"}\n'
# Each command ends at once, or is refused.
SECONDS = 20
# Values that most settings refuse, each for a reason of its own.
WRONG_VALUES = ["", "0", "-1", "nonsense", "99999999999999999999", "/none/file", "http://a.example"]
# Without a configuration.
BARE = """
version --xyz | nonsense | grants | grants nonsense | status --nonsense | --max-rate 0 | --max-rate x --run-once
--log-level loud | help nonsense | keys generate | keys generate extra | grants list | status | doctor --xyz
grants show | token | token 1 --min-ttl x | --config BAD-CONF status | --config OTHER-CONF status
--config MISSING status | --config FOLDER status | --config BAD-CONF --run-once | --config OTHER-CONF --run-once
config | config show | config show --json | config show --max-rate x | completion | completion zsh
version | version --json | --version | help --format nonsense | help --format bash | help --format zsh
help --format fish | help --format refresh-worker.1 | help --format refresh-worker.conf.5
services credential | services credential a b | services credential --scope | grants lsit | user list | --verbose
"""
# With the prepared configuration. Names in capitals are files of the folder.
CONFIGURED = """
keys generate | keys generate | keys list | grants list | grants import GRANTS | grants import GRANTS
grants import BAD-GRANTS | grants import BAD-GRANTS --dry-run | grants import MISSING | grants import FOLDER
grants import EMPTY | grants list --json | grants list --state nonsense | grants show 1 | grants show 1 --json
grants show nobody | token nobody | users list | users show 1 | users show nobody | users delete nobody
users import BAD-GRANTS | keys rotate --xyz | keys rotate | keys list --json | keys retire 12345678
keys retire nonsense | grants retry nobody | grants retry | grants retry --state suspended
grants disconnect nobody | grants export | grants export --plaintext | grants set-client --from x --to y
backup FOLDER | backup COPY | backup COPY | backup MISSING/x | store copy | store copy --from DAMAGED --to NEW
store copy --from MISSING --to NEW | services handle x y --services-file OPEN-SERVICES | notices replay
google-events | results recover FOLDER | results recover MISSING | status | status --json | --listen 1.2.3.4
--listen-internal 0.0.0.0:1 --run-once | --services-file OPEN-SERVICES --listen-internal unix:SOCKET
--services-file SERVICES --listen-internal unix:SOCKET | --notice-url http://a.example
--token-endpoint http://a.example --run-once | --token-endpoint nonsense --run-once | --ca-file MISSING --run-once
--client-secret-file MISSING --run-once | --client-secret-file OPEN-SERVICES --run-once
--client-secret-file EMPTY --run-once | --metrics-log FOLDER --run-once | --metrics-log MISSING/log --run-once
--key-file MISSING status | --key-file MISSING grants list | --key-file MISSING token 1
--key-file FOLDER keys list | --key-file SHORT-KEYS keys list | --key-file GRANTS keys list
--key-file MISSING keys generate | --key-file MISSING/keys --database NEW keys generate
--key-file EMPTY --run-once | --database DAMAGED status | --database DAMAGED grants list | --database FOLDER status
--database MISSING/db status | --database MISSING/db --run-once | --database BLANK status
--database GRANTS grants list | --database postgres://u@127.0.0.1:1/x status | --database postgres://u:p@h/x status
--database url-file:MISSING status | keys rotate | --listen 127.0.0.1:0 --jwt-secret-file MISSING
--listen 127.0.0.1:0 --jwt-secret-file EMPTY | --listen 127.0.0.1:0 | --session-grace 0
--accept-former-refresh-tokens-until x | restore MISSING | restore COPY | store clock | store clock --json
users forget nobody | grants history nobody | grants add nobody | notices test | google-events register
google-events status | google-events verify | google-events register --key-file MISSING | --run-once
grants show 1 --connection work | grants show 1 --connection new | grants history 1 --connection work
grants retry 1 --connection work | grants retry --state suspended --connection work | token 1 --connection work
grants disconnect 1 --connection work | grants disconnect 1 --connection default --dry-run --json
grants list --label a=b | grants list --label nonsense | services handle x y --connection work
"""


def prepare(folder):
    """Files that most commands need: a key ring, a configuration, grants to import, and broken ones."""
    (folder / "conf").write_text(
        f"REFRESH_WORKER_DATABASE={folder}/db\nREFRESH_WORKER_KEY_FILE={folder}/keys\n"
        f"REFRESH_WORKER_CLIENT_ID={CLIENT}\nREFRESH_WORKER_METRICS_LOG={folder}/log\n"
        "REFRESH_WORKER_TOKEN_ENDPOINT=http://127.0.0.1:1/token\n"
    )
    (folder / "grants").write_text(GRANT)
    (folder / "bad-grants").write_text('{"user_id":"2"}\nnot json\n{"user_id":"","refresh_token":"1//b"}\n')
    (folder / "bad-conf").write_text("REFRESH_WORKER_MAX_RATE=0\n")
    (folder / "other-conf").write_text("NOT_A_SETTING=1\nREFRESH_WORKER_UNKNOWN=2\nbroken line\n")
    (folder / "short-keys").write_text("00000001 abc\n")
    (folder / "damaged").write_bytes(b"SQLite format 3\0" + b"\1" * 8192)
    (folder / "empty").write_text("")
    (folder / "blank").write_text("")
    (folder / "services").write_text('{"services":[{"name":"a"}]}')
    (folder / "folder").mkdir()
    for name in ["short-keys", "services", "empty"]:
        (folder / name).chmod(0o600)
    shutil.copy(folder / "services", folder / "open-services")
    (folder / "open-services").chmod(0o644)


def listed(commands):
    return [command.strip() for command in commands.strip().replace("\n", "|").split("|")]


class CommandLines:
    """Runs command lines in a folder of their own, and keeps what they write."""

    def __init__(self, program, folder, recording):
        self.program = program
        self.folder = folder
        self.recording = recording
        prepare(folder)
        self.files = {path.name.upper(): str(path) for path in folder.iterdir()}
        self.files |= {name: str(folder / name.lower()) for name in ["MISSING", "DB", "COPY", "NEW", "SOCKET"]}
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TZ": "UTC"}
        # The defaults are an installation's files.
        self.bare = {
            **self.environment,
            "REFRESH_WORKER_DATABASE": f"{folder}/bare-db",
            "REFRESH_WORKER_KEY_FILE": f"{folder}/bare-keys",
        }

    def record(self, command, words, environment):
        try:
            run = self.run(words, environment)
            text = f"exit code {run.returncode}\n{as_lines(run.stdout)}{run.stderr}"
        except subprocess.TimeoutExpired:
            text = f"it still runs after {SECONDS} s"
        # The only grant is tried again by some of the passes, soon after each other.
        text = re.sub(r"(?m)^due +\d.*", "due N", text)
        self.recording.add(f"$ refresh-worker {command}", masked(text, [(self.folder, "FOLDER")]))

    def run(self, words, environment):
        return subprocess.run(
            [self.program, *words], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=SECONDS,
        )

    def words(self, command):
        return [re.sub("[A-Z][A-Z-]*", lambda match: self.files.get(match[0], match[0]), w) for w in command.split()]

    def record_help(self):
        """The help of each command, which the completions for bash list with its flags; returns the settings."""
        completions = self.run(["help", "--format", "bash"], self.bare).stdout
        flags = dict(re.findall(r"^ *'([^']*)'\) offered='(--[^']*)'", completions, re.MULTILINE))
        assert "grants list" in flags, "the completions list the commands"
        for command in ["", *flags]:
            for words in ([*command.split(), "--help"], ["help", *command.split()]):
                self.record(" ".join(words), words, self.bare)
        # A command that misses operands, has too many, or has an option that no command has.
        for command in flags:
            for extra in ([], ["--no-such-option"], ["a", "b", "c", "d"]):
                if extra or command:
                    self.record(" ".join([command, *extra]), [*command.split(), *extra], self.bare)
        return flags[""].split()

    def record_settings(self, settings):
        """Wrong values of each setting, as a flag, and one in the environment and in the file."""
        # A database without grants: a pass ends at once.
        conf = self.folder / "settings-conf"
        conf.write_text((self.folder / "conf").read_text().replace(f"{self.folder}/db", f"{self.folder}/no-grants"))
        for flag in settings:
            if flag in ("--help", "--version", "--run-once"):
                continue
            for value in WRONG_VALUES:
                words = ["--config", conf, flag, value, "--run-once"]
                self.record(f"--config CONF {flag} '{value}' --run-once", words, self.environment)
            words = ["--config", conf, "--run-once", flag]
            self.record(f"--config CONF --run-once {flag}", words, self.environment)
            name = "REFRESH_WORKER_" + flag[2:].upper().replace("-", "_")
            words = ["--config", conf, "--run-once"]
            environment = {**self.environment, name: "nonsense"}
            self.record(f"--config CONF --run-once, with {name}=nonsense", words, environment)
            file = self.folder / "one-wrong"
            file.write_text(conf.read_text() + f"{name}=nonsense\n")
            words = ["--config", str(file), "--run-once"]
            self.record(f"--config FILE --run-once, with {name}=nonsense in FILE", words, self.environment)


def record(program, recording):
    with tempfile.TemporaryDirectory() as name:
        lines = CommandLines(program, pathlib.Path(name).resolve(), recording)
        for command in listed(BARE):
            lines.record(command, lines.words(command), lines.bare)
        settings = lines.record_help()
        for command in listed(CONFIGURED):
            command = f"--config CONF {command}"
            lines.record(command, lines.words(command), lines.environment)
        lines.record_settings(settings)
