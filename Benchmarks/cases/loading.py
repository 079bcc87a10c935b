"""Loading a file of new grants with `refresh-worker grants import`."""

import json
import time

from harness import chart, grants, measuring, paths, postgres, report

TITLE = "Loading new grants with `grants import`"
SCOPE = "openid email https://www.googleapis.com/auth/gmail.readonly"


def measure(scale, folder):
    count = scale.pick(1_000_000, 3_000)
    file = folder / "grants.jsonl"
    with open(file, "w") as lines:
        for number in range(count):
            lines.write(json.dumps(line(number)) + "\n")
    rows = []
    with postgres.Server(folder / "server") as server:
        server.create("imported")
        for name, url in [("SQLite", None), ("PostgreSQL", server.url("imported"))]:
            store = grants.Grants(folder / name)
            if url is not None:
                store.database = url
            for run in ["new", "stored"]:
                rows.append({"store": name, "grants": run, **load(store, file, count, is_new=run == "new")})
                scale.say(str(rows[-1]))
            check(store, count, folder)
    return {"grants": count, "rows": rows}


def line(number):
    """A grant with tokens as long as Google's, and the fields that a backend usually has."""
    user = f"user-{number * 2_654_435_761 % 2**32:010}"
    return {"user_id": user, "refresh_token": f"1//0{number:010}-{'r' * 88}",
            "access_token": f"ya29.first-{number:010}{'a' * 199}", "expires_in": 3600, "scope": SCOPE,
            "google_user_id": f"1{number:020}", "google_email": f"{user}@example.com"}


def load(store, file, count, is_new):
    """Imports the file, and returns the rate and the worker's cost."""
    started = time.monotonic()
    cost = measuring.run([paths.WORKER, "grants", "import", file, "--json", "--database", store.database,
                          "--key-file", store.keys, "--client-id", "bench"])
    seconds = time.monotonic() - started
    tally = json.loads(cost.output)
    if tally["stored" if is_new else "kept"] != count or tally["read"] != count:
        raise SystemExit(f"of {count} grants the import reports {tally}")
    return {"per_second": count / seconds, "cpu_per_1000": cost.cpu_seconds * 1000 / count,
            "peak_megabytes": cost.peak_kilobytes / 1000}


def check(store, count, folder):
    """Exports the grants, and compares their users and tokens with the file's."""
    exported = folder / "exported.jsonl"
    cost = measuring.run([paths.WORKER, "grants", "export", "--plaintext", "--database", store.database,
                          "--key-file", store.keys], output=exported)
    kept = ["user_id", "refresh_token", "access_token", "scope", "google_user_id", "google_email"]
    with open(exported) as lines:
        found = {grant["user_id"]: [grant[name] for name in kept] for grant in map(json.loads, lines)}
    wrong = [number for number in range(count)
             if found.get(line(number)["user_id"]) != [line(number)[name] for name in kept]]
    if cost.exit_code != 0 or len(found) != count or wrong:
        raise SystemExit(f"{len(found)} of {count} grants are stored, and these are wrong: {wrong[:10]}")


def tables(figures):
    rows = [[f"{row['store']}, {row['grants']}", f"{row['per_second']:,.0f}", f"{row['cpu_per_1000']:.3f}",
             f"{row['peak_megabytes']:.0f}"] for row in figures["rows"]]
    return (
        f"A file of {figures['grants']:,} grants is loaded into an empty database, and once more: the second run keeps "
        "what is stored. Afterwards each stored token is compared with the file's.\n\n"
        + report.table(["database, grants of the file", "grants/s", "CPU-s per 1,000", "peak MB"], rows)
    )


def charts(figures):
    return {"loading": chart.bars("Loading grants", "grants a second", [
        (f"{row['store']}, {row['grants']}", row["per_second"]) for row in figures["rows"]])}


def goals(figures):
    rate = next(row["per_second"] for row in figures["rows"]
                if row["store"] == "PostgreSQL" and row["grants"] == "new")
    return [("10,000 new grants/s into a local PostgreSQL", f"{rate:,.0f}/s", rate >= 10_000)]
