"""Instructions of one refresh: a measure that a busy machine does not disturb."""

import re
import shutil

from harness import chart, contenders, endpoint, grants, measuring, paths, programs, report

TITLE = "Instructions of one refresh"


def measure(scale, folder):
    """Two runs of different length each: the cost of a program's start and end cancels out in the difference.

    A TLS handshake takes as many instructions as several refreshes, and a client opens a random number of connections
    at its start. Both runs are long enough to open all, and differ by so much that a few handshakes do not matter.
    """
    counts = scale.pick((2_000, 12_000), (100, 200))
    shim = folder / "sigsuspend.so"
    programs.call("cc", "-shared", "-fPIC", "-O1", "-o", shim, paths.BENCHMARKS / "harness" / "instructions.c")
    go = programs.build_go("x_oauth2")
    rows = []
    with endpoint.Endpoint(folder / "endpoint") as site:
        # On a busy machine, Valgrind may take longer for 64 handshakes at once than the worker's connect deadline.
        for version in scale.pick(["h2", "h1"], ["h2"]):
            def fetch(count):
                return [go, site.url(version), site.ca_file, count, version]

            def limit(count):
                return contenders.h2load(site, version, count)

            for name, command in [("refresh-worker", None), ("x/oauth2 (Go)", fetch), ("h2load", limit)]:
                def of(count):
                    return instructions(site, folder, shim, command, version, count)

                short, long = of(counts[0]), of(counts[1])
                each = (long - short) / (counts[1] - counts[0])
                scale.say(f"{name} {version}: {each:,.0f} instructions each")
                rows.append({"name": name, "version": version, "instructions": each})
    return {"counts": counts, "contenders": rows}


def instructions(site, folder, shim, command, version, count):
    """All instructions in user space of a run that refreshes `count` grants."""
    if command:
        words = command(count)
    else:
        store = grants.Grants(folder / "grants")
        store.fill(count, outage=3600)
        # At this rate, which Valgrind does not reach, the worker has as many requests in flight as the peers.
        words = [paths.WORKER, "--run-once", "--metrics-log", folder / "metrics.log", *store.settings(site, version),
                 "--max-rate", 320]
    site.start_log()
    # Callgrind counts wrongly if Go interrupts its own threads by a signal, which can be turned off.
    environment = {"LD_PRELOAD": str(shim), "GODEBUG": "asyncpreemptoff=1"}
    log = folder / "valgrind.log"
    cost = measuring.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words], log, environment)
    site.flush_log()
    if not command:
        store.verify_once_each(site.issued, count)
        shutil.rmtree(folder / "grants")
    total = re.search(r"Collected : (\d+)", log.read_text())
    if cost.exit_code != 0 or not total or endpoint.span(site.issued)[0] != count:
        raise SystemExit(f"{words[0]} failed under Valgrind:\n{log.read_text()}")
    return int(total.group(1))


def tables(figures):
    rows = [[f"{one['name']}, {one['version']}", f"{one['instructions']:,.0f}"] for one in figures["contenders"]]
    return ("Counted by Valgrind's Callgrind, in user space: the difference of two runs of "
            f"{figures['counts'][0]} and {figures['counts'][1]} refreshes. Instructions of the kernel are not "
            "counted.\n\n"
            + report.table(["client", "instructions"], rows))


def charts(figures):
    rows = [(f"{one['name']}, {one['version']}", one["instructions"] / 1000) for one in figures["contenders"]]
    return {"instructions": chart.bars("Instructions of one refresh", "thousands, user space", rows)}


def goals(figures):
    of = {(one["name"], one["version"]): one["instructions"] for one in figures["contenders"]}
    results = []
    for version, name in [("h1", "HTTP/1.1"), ("h2", "HTTP/2")]:
        ratio = of["refresh-worker", version] / of["x/oauth2 (Go)", version]
        results.append(
            (
                f"instructions per refresh over {name} against Go's bare fetch: at most equal",
                f"{ratio:.2f} times",
                ratio <= 1,
            )
        )
    return results
