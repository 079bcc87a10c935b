"""Instructions of one refresh: a measure that a busy machine does not disturb."""

import re
import shutil

from harness import chart, contenders, endpoint, grants, measuring, paths, programs, report

TITLE = "Instructions of one refresh"


# The numbers of grants of the two runs, and the worker's --max-rate. Over HTTP/2, Valgrind does not reach the rate, and
# the worker has as many requests in flight as the peers. Over HTTP/1.1 the worker makes a TLS handshake for each
# request: Valgrind needs longer than the connect deadline for 64 of them at once, even without other load.
RUNS = {"h2": ((2_000, 12_000), 1_000), "h1": ((50, 250), 5)}
SHORT_RUNS = {"h2": ((100, 200), 1_000), "h1": ((5, 10), 5)}
GOAL = 220_000


def measure(scale, folder):
    """Two runs of different length each: the cost of a program's start and end cancels out in the difference.

    A TLS handshake takes as many instructions as several refreshes, and a client opens a random number of connections
    at its start. Where connections are kept, both runs are long enough to open all, and differ by so much that a few
    handshakes do not matter.
    """
    shim = folder / "sigsuspend.so"
    programs.call("cc", "-shared", "-fPIC", "-O1", "-o", shim, paths.BENCHMARKS / "harness" / "instructions.c")
    go = programs.build_go("x_oauth2")
    kept = scale.pick(RUNS, SHORT_RUNS)["h2"][0]
    rows = []
    with endpoint.Endpoint(folder / "endpoint") as site:
        for version, (counts, max_rate) in scale.pick(RUNS, SHORT_RUNS).items():
            def fetch(count):
                return [go, site.url(version), site.ca_file, count, version]

            def limit(count):
                return contenders.h2load(site, version, count)

            for name, command in [("refresh-worker", None), ("x/oauth2 (Go)", fetch), ("h2load", limit)]:
                short, long = kept if command else counts
                totals = [instructions(site, folder, shim, command, version, count, max_rate)
                          for count in (short, long)]
                each = (totals[1] - totals[0]) / (long - short)
                scale.say(f"{name} {version}: {each:,.0f} instructions each")
                rows.append({"name": name, "version": version, "instructions": each, "counts": [short, long]})
    return {"contenders": rows}


def instructions(site, folder, shim, command, version, count, max_rate, bound=False):
    """All instructions in user space of a run that refreshes `count` grants, whose tokens can be bound to a key."""
    if command:
        words = command(count)
    else:
        store = grants.Grants(folder / "grants")
        store.fill(count, outage=3600, bound=bound)
        words = [paths.WORKER, "--run-once", "--metrics-log", folder / "metrics.log", *store.settings(site, version),
                 "--max-rate", max_rate]
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
    of = {(one["name"], one["version"]): f"{one['instructions']:,.0f}" for one in figures["contenders"]}
    names = dict.fromkeys(one["name"] for one in figures["contenders"])
    rows = [[name, of[name, "h2"], of[name, "h1"]] for name in names]
    return ("In user space, counted by Valgrind's Callgrind. Over HTTP/1.1 the worker makes a TLS handshake for each "
            "request.\n\n" + report.table(["client", "HTTP/2", "HTTP/1.1"], rows))


def charts(figures):
    rows = [(f"{one['name']}, {one['version']}", one["instructions"] / 1000) for one in figures["contenders"]]
    return {"instructions": chart.bars("Instructions of one refresh", "thousands, user space", rows)}


def goals(figures):
    of = {(one["name"], one["version"]): one["instructions"] for one in figures["contenders"]}
    return [report.at_most("user-space instructions per refresh, HTTP/2", of["refresh-worker", "h2"], GOAL,
                           shown="{:,.0f}")]
