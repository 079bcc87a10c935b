"""kill -9 in commands: key rotation, import, backup, store copy and the creation of a store die at a call, and then
run again."""

import json
import pathlib

from postgres import Proxy, Server, address
from trial import Template, Trial, command
from verification import check_integrity

GRANTS = 60
NEW_GRANT = json.dumps({
    "user_id": "new", "access_token": "a", "refresh_token": "1//new-0-refresh", "expires_at": "2026-01-01T00:00:00",
    "scope": "openid", "token_type": "Bearer",
})
# All columns and indexes of the schema.
SCHEMA = """
    SELECT c.relname::text AS name, a.attname::text AS part FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = to_regnamespace('refresh_worker') AND NOT a.attisdropped ORDER BY 1, 2
"""
# A killed worker counts as live for 30 seconds, and the next command waits for that.
JOBS_FACTOR = 6


def template(base):
    return Template(base, GRANTS)


def trial(part, seed, index, base, template):
    commands = [rotate, import_grants, back_up, copy, create, copy_to_server, create_on_server]
    kill_in_command = commands[index % len(commands)]
    with Trial(part, seed, index, base, template, latency=0) as one:
        one.control.set(one.control.ON, 1)
        counts = kill_in_command(one)
        if isinstance(one.database, pathlib.Path):
            check_integrity(one.database)
        return counts, one.notes


def killed(one, kinds, *arguments, stdin=None):
    """Runs a command that is killed at a call of one of these kinds; returns 1 if it was."""
    kind, most = one.chance.choice(kinds)
    rule = f"kill:{kind}:n={one.chance.randrange(1, most + 1)}"
    for word in range(one.control.FIRST_RULE, one.control.WORDS):
        one.control.set(word, 0)
    result = one.run(*arguments, rules=[rule], stdin=stdin, expect=None)
    if one.chance.random() < 0.5:
        one.new_boot()  # Then the killed process does not count as live, and the next command does not wait.
    one.note(f"{' '.join(map(str, arguments[:2]))} under {rule}: {result.returncode}")
    assert result.returncode in (0, -9), (
        f"{arguments} under {rule} succeeds or is killed; it wrote: {result.stderr[-400:]}"
    )
    return int(result.returncode == -9)


def check_tokens(one, names):
    """Raises unless each user's first token is stored and readable."""
    stored = one.stored()
    for name in names:
        assert stored.get(name, {}).get("refresh_token") == f"1//{name}-0-refresh", f"{name}'s first token is stored"


def rotate(one):
    kills = killed(one, [("write/*", 60), ("sync/*", 8), ("rename/keys", 2), ("open/keys", 4), ("write/keys", 2)],
                   "keys", "rotate")
    check_tokens(one, one.google.accounts)
    one.run("keys", "rotate")
    check_tokens(one, one.google.accounts)
    for key in sealing_nothing(one):
        kills += killed(
            one, [("rename/keys", 1), ("write/keys", 1), ("sync/keys", 1), ("sync/folder", 1)], "keys", "retire", key
        )
        check_tokens(one, one.google.accounts)
        # 75 means that the killed command had retired the key: it stays in the file for a day.
        one.run("keys", "retire", key, expect=(0, 75))
        [line] = [line for line in (one.disk / "keys").read_text().splitlines() if line.startswith(key)]
        assert " retired " in line, f"the key {key} is marked as retired"
    check_tokens(one, one.google.accounts)
    return {"kills": kills}


def sealing_nothing(one):
    """The keys that seal no token, according to `keys list`."""
    lines = [line.split() for line in one.run("keys", "list").stdout.splitlines()]
    return [words[0] for words in lines if words[2] == "0"]


def import_grants(one):
    names = [f"new{number}" for number in range(300)]
    lines = "".join(json.dumps({
        "user_id": name, "access_token": "a", "refresh_token": f"1//{name}-0-refresh",
        "expires_at": "2026-01-01T00:00:00", "scope": "openid", "token_type": "Bearer",
    }) + "\n" for name in names)
    kills = killed(one, [("write/wal", 200), ("sync/*", 8), ("write/db", 60)], "grants", "import", "-", stdin=lines)
    before = one.stored()
    assert before.keys() >= one.google.accounts.keys(), "the killed import keeps every grant"
    one.run("grants", "import", "-", stdin=lines)
    check_tokens(one, [*names, *one.google.accounts])
    return {"kills": kills}


def back_up(one):
    target = one.disk / "backup.sqlite"
    kills = killed(
        one, [("write/*", 80), ("sync/*", 4), ("rename/*", 1), ("unlink/*", 2), ("open/*", 12)], "backup", target
    )
    if kills and not target.exists():
        one.run("backup", target)
    check_integrity(target)
    for leftover in ("-wal", "-shm"):
        (one.disk / ("backup.sqlite" + leftover)).unlink(missing_ok=True)
    one.database = target
    check_tokens(one, one.google.accounts)
    return {"kills": kills}


def copy(one):
    source, target = one.database, one.disk / "copy.sqlite"
    kills = copy_twice(one, source, target, [("write/*", 300), ("sync/*", 20), ("open/*", 20), ("write/db", 60)])
    one.database = target
    check_tokens(one, one.google.accounts)
    check_copied_source(one, source)
    return {"kills": kills}


def copy_to_server(one):
    server = Server(one.folder)
    proxy = Proxy(server.folder / ".s.PGSQL.5432")
    try:
        source = one.database
        kills = copy_twice(
            one, source, address(proxy), [("send/net", 50), ("receive/net", 60), ("write/wal", 8), ("sync/wal", 3)]
        )
        one.database = server.url
        check_tokens(one, one.google.accounts)
        check_copied_source(one, source)
    finally:
        proxy.close()
        server.stop()
    return {"kills": kills}


def copy_twice(one, source, target, kinds):
    """Copies with a kill, and then again; returns the number of kills."""
    line = ("store", "copy", "--from", source, "--to", target)
    kills = killed(one, kinds, *line)
    again = one.run(*line, expect=None)
    # 73 means that the target is in use: the killed command had finished, which the source's refusal confirms.
    assert again.returncode in (0, 73), f"the second copy continues the first; it wrote: {again.stderr[-400:]}"
    return kills


def check_copied_source(one, source):
    """Raises unless the copied store is intact and refuses to be used."""
    check_integrity(source)
    refused = command(one.arguments()[:1], "--database", source, "--key-file", one.disk / "keys", "--client-id", "x",
                      "--run-once", environment=one.environment(), expect=None)
    assert refused.returncode == 78, f"the source is not used any more; the worker wrote: {refused.stderr[-300:]}"


def create(one):
    """Creates a store: the first command that opens the file does that."""
    # A missing file with others of the database beside it would be refused as lost.
    for path in one.database.parent.glob(one.database.name + "*"):
        path.unlink()
    kills = killed(one, [("write/wal", 60), ("sync/*", 6), ("write/db", 40), ("write/journal", 4)],
                   "grants", "import", "-", stdin=NEW_GRANT)
    one.run("grants", "import", "-", stdin=NEW_GRANT)
    check_tokens(one, ["new"])
    return {"kills": kills}


def create_on_server(one):
    """The same on PostgreSQL; after the kill the schema is complete, or there is none."""
    server = Server(one.folder)
    proxy = Proxy(server.folder / ".s.PGSQL.5432")
    try:
        one.database = address(proxy)
        kills = killed(one, [("send/net", 30), ("receive/net", 40)], "grants", "import", "-", stdin=NEW_GRANT)
        if kills and one.chance.random() < 0.5:
            # The server may not have noticed yet that the command's connection is gone.
            server.stop("immediate")
            server.start()
        schema = server.query(SCHEMA)
        one.database = server.url
        one.run("grants", "import", "-", stdin=NEW_GRANT)
        if schema:
            assert schema == server.query(SCHEMA), "a killed command leaves a complete schema or none"
        check_tokens(one, ["new"])
    finally:
        proxy.close()
        server.stop()
    return {"kills": kills}
