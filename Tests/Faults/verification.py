"""Compares what the worker reported, what the store contains, and what the server recorded."""

import calendar
import contextlib
import sqlite3
import time

from google import number_of, owner_of

ENDED = {"disconnected", "reauth_required"}
# A report is written after its commit: allow for the time between the commit and the line's time stamp.
SLACK = 0.002


def seconds(text):
    whole, _, fraction = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + (fraction or "0"))


def verify(trial, complete=False, may_lose=False):
    """Verifies a trial whose worker has ended; fails with all problems, and returns the counts.

    `complete` means that every answer reached a worker that survived: then none may be missing in the store. `may_lose`
    means that the store may lose commits, like an asynchronous standby: losses are counted and are not faults.
    """
    stored = trial.stored()
    reports = {}
    void = 0
    for event in trial.metrics():
        if event["event"] != "refresh":
            continue
        user = trial.users.get(event["grant"])
        if event["outcome"] == "refreshed" and event["rotated"]:
            reports.setdefault(user, []).append(seconds(event["time"]))
        elif event["rotated"]:
            void += 1
    foreign, lost, wrong, doubled, explained = [], [], [], [], 0
    for name, account in trial.google.accounts.items():
        line, reported = stored.get(name), len(reports.get(name, []))
        token = (line or {}).get("refresh_token")
        last = number_of(token) if token else -1
        if token and owner_of(token) != name:
            foreign.append(f"{name}: holds a token of {owner_of(token)}")
        elif last < reported:
            lost.append(f"{name}: {reported} rotations reported, token number {last} stored, {account.issued} issued")
        elif last > account.issued:
            wrong.append(f"{name}: holds token number {last}, which was never issued")
        elif last < account.issued and complete:
            wrong.append(
                f"{name}: token number {account.issued} was issued and {last} is stored, although nothing was cut off"
            )
        elif last < account.issued:
            explained += 1  # The answer with the newest token was lost on the way, and was never reported as stored.
        elif line["state"] in ENDED:
            uses = [f"{at:.3f} {number} {'granted' if granted else 'refused'}" for at, number, granted in account.uses]
            wrong.append(
                f"{name}: {line['state']} ({line.get('reason')}), but the server accepts its token {last}; its "
                f"uses: {', '.join(uses)}"
            )
        doubled += repeats(name, account, reports.get(name, []), trial)
    problems, losses = [], len(lost)
    if may_lose:
        lost = doubled = []
    for title, cases in (
        ("tokens of another user", foreign), ("reported tokens lost", lost), ("wrong states", wrong),
        ("unexplained double calls", doubled),
    ):
        if cases:
            problems.append(f"{len(cases)} {title}, such as {cases[0]}")
    if overlaps := trial.google.overlaps:
        problems.append(f"{len(overlaps)} times two requests for one grant at once, such as {overlaps[0]}")
    if trial.google.pipelined:
        problems.append(f"{trial.google.pipelined} requests on a connection before its previous answer was sent")
    assert not problems, "the worker kept its guarantees: " + "; ".join(problems)
    return {
        "reports": sum(map(len, reports.values())), "answers lost unreported": explained, "void with a token": void,
        "requests": trial.google.requests, **({"grants that lost a reported token": losses} if may_lose else {}),
    }


def repeats(name, account, reports, trial):
    """Uses of a token that had been used successfully, although the worker knew the first one's outcome."""
    repeated, used = [], {}
    for at, number, granted in account.uses:
        if number in used:
            first = used[number]
            # The outcome is known once it is reported, and lost with the process that waited for it.
            is_reported = len(reports) > number and sorted(reports)[number] < at - SLACK
            if is_reported:
                repeated.append(
                    f"{name}: token number {number} was used at {first:.3f}, reported, and used again at {at:.3f}"
                )
        elif granted:
            used[number] = at
    return repeated


def check_integrity(database):
    """Raises unless SQLite's integrity check passes."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection:
        rows = connection.execute("PRAGMA integrity_check").fetchall()
    assert rows == [("ok",)], "the database is intact"
