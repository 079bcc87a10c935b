"""Instructions of one refresh: a measure that a busy machine does not disturb."""

import re
import shutil

from harness import chart, contenders, endpoint, measuring, paths, programs, report

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
    shim = build_shim(folder)
    runs = scale.pick(RUNS, SHORT_RUNS)
    kept = runs["h2"][0]
    rows = []
    with endpoint.Endpoint(folder / "endpoint") as site:
        for version, (counts, max_rate) in runs.items():
            worker = contenders.Worker(version, max_rate=max_rate)
            for one in [worker, *peers(version)]:
                counts_of_one = counts if one is worker else kept
                each = of_one_refresh(site, folder, shim, one, counts_of_one)
                scale.say(f"{one.name} {version}: {each:,.0f} instructions each")
                rows.append({"name": one.name, "version": version, "instructions": each,
                             "counts": list(counts_of_one)})
    return {"contenders": rows}


def peers(version):
    """The floor does the worker's work, and the others only fetch."""
    fetching = [contenders.x_oauth2(version), contenders.Contender("h2load", version, contenders.h2load)]
    return [contenders.the_floor(), *fetching] if version == "h2" else fetching


def build_shim(folder):
    """Compiles what is preloaded under Valgrind."""
    shim = folder / "sigsuspend.so"
    programs.call("cc", "-shared", "-fPIC", "-O1", "-o", shim, paths.BENCHMARKS / "harness" / "instructions.c")
    return shim


def of_one_refresh(site, folder, shim, contender, counts):
    """The difference of two runs, for each grant by which they differ."""
    short, long = counts
    of_short, of_long = [instructions(site, folder, shim, contender, count) for count in (short, long)]
    return (of_long - of_short) / (long - short)


def instructions(site, folder, shim, contender, count):
    """All instructions in user space of a run that refreshes `count` grants; its work is checked."""
    place = folder / "counted"
    place.mkdir()
    words, verify = contender.prepare(site, count, place)
    site.start_log()
    # Callgrind counts wrongly if Go interrupts its own threads by a signal, which can be turned off.
    environment = {"LD_PRELOAD": str(shim), "GODEBUG": "asyncpreemptoff=1"}
    log = place / "valgrind.log"
    cost = measuring.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words], log, environment,
                         output=place / "output.log")
    site.flush_log()
    total = re.search(r"Collected : (\d+)", log.read_text())
    if cost.exit_code != 0 or not total:
        raise SystemExit(f"{words[0]} failed under Valgrind:\n{log.read_text()}")
    verify()
    shutil.rmtree(place)
    return int(total.group(1))


def tables(figures):
    of = {(one["name"], one["version"]): f"{one['instructions']:,.0f}" for one in figures["contenders"]}
    names = dict.fromkeys(one["name"] for one in figures["contenders"])
    rows = [[name, of[name, "h2"], of.get((name, "h1"), "")] for name in names]
    ratio = against_floor(figures)
    comparison = "" if ratio is None else f" The worker takes {ratio:.2f} times those of the floor."
    return ("In user space, counted by Valgrind's Callgrind. Over HTTP/1.1 the worker makes a TLS handshake for each "
            f"request.{comparison}\n\n" + report.table(["client", "HTTP/2", "HTTP/1.1"], rows))


def against_floor(figures):
    """The worker's instructions over HTTP/2 as a multiple of the floor's; none in a run from before the floor."""
    of = {one["name"]: one["instructions"] for one in figures["contenders"] if one["version"] == "h2"}
    if contenders.FLOOR not in of:
        return None
    return of["refresh-worker"] / of[contenders.FLOOR]


def charts(figures):
    rows = [(f"{one['name']}, {one['version']}", one["instructions"] / 1000) for one in figures["contenders"]]
    return {"instructions": chart.bars("Instructions of one refresh", "thousands, user space", rows)}


def goals(figures):
    of = {(one["name"], one["version"]): one["instructions"] for one in figures["contenders"]}
    results = [report.at_most("user-space instructions per refresh, HTTP/2", of["refresh-worker", "h2"], GOAL,
                              shown="{:,.0f}")]
    ratio = against_floor(figures)
    if ratio is not None:
        results.append(report.at_most("user-space instructions per refresh against the floor, HTTP/2", ratio,
                                      contenders.FLOOR_GOAL))
    return results
