"""Refreshes a second, the processor time of the client only, and its system calls."""

import shutil
import statistics

from harness import chart, contenders, endpoint, report, system_calls

TITLE = "Refreshes a second, and what each costs"
HTTP = {"h2": "HTTP/2", "h1": "HTTP/1.1"}
WORKER, GO, GO_FETCH = "refresh-worker", "Go, same work", "x/oauth2 (Go)"


def measure(scale, folder):
    rounds, count = scale.pick(3, 1), scale.pick(60_000, 200)
    programs = contenders.all_contenders()
    runs = {(one.name, one.version): [] for one in programs}
    calls = {}

    def in_turn(one, action):
        place = folder / "turn"
        place.mkdir()
        figures = action(site, count, place)
        shutil.rmtree(place)
        scale.say(f"{one.name} {one.version}: {figures}")
        return figures

    with endpoint.Endpoint(folder / "endpoint") as site:
        for _ in range(rounds):
            for one in programs:
                runs[one.name, one.version].append(in_turn(one, one.run))
        for one in programs:
            if one.does_the_work:
                calls[one.name, one.version] = in_turn(one, one.count_system_calls)
    return {"rounds": rounds, "count": count, "calls_counted_by": system_calls.method(),
            "contenders": [summary(one, count, runs[one.name, one.version], calls.get((one.name, one.version)))
                           for one in programs]}


def summary(one, count, runs, calls):
    """The best and the median of the rounds: the best round was least disturbed by other programs of the machine."""
    def of(key):
        return [run[key] for run in runs]

    return {"name": one.name, "version": one.version, "does_the_work": one.does_the_work,
            "count": int(count * one.fraction),
            "per_second": {"best": max(of("per_second")), "median": statistics.median(of("per_second"))},
            "cpu_per_1000": {"best": min(of("cpu_per_1000")), "median": statistics.median(of("cpu_per_1000"))},
            "peak_megabytes": max(of("peak_megabytes")), "system_calls": calls}


def tables(figures):
    floor = floor_of(figures)
    rows = [row(one, floor) for one in sorted(figures["contenders"], key=lambda one: not one["does_the_work"])]
    head = ["client", "refreshes/s", "CPU-s per 1,000", "against the floor", "peak MB", "system calls each"]
    return (
        f"Medians of {figures['rounds']} rounds. The first programs do the same work: they claim, open, request, seal, "
        "commit durably and report each refresh. The others only send requests.\n\n"
        + report.table(head, rows)
    )


def row(one, floor):
    cpu = one["cpu_per_1000"]["median"]
    against_floor, system_calls_each = "", ""
    if one["does_the_work"]:
        system_calls_each = f"{one['system_calls']:.1f}"
        if floor is not None:
            against_floor = f"{cpu / floor['cpu_per_1000']['median']:.2f}"
    return [f"{one['name']}, {HTTP[one['version']]}", f"{one['per_second']['median']:,.0f}", f"{cpu:.4f}",
            against_floor, f"{one['peak_megabytes']:.0f}", system_calls_each]


def floor_of(figures):
    """The floor; none in a run from before it existed."""
    return next((one for one in figures["contenders"] if one["name"] == contenders.FLOOR), None)


def charts(figures):
    def label(one):
        return f"{one['name']}, {one['version']}"

    def of(key):
        return [(label(one), one[key]["median"]) for one in figures["contenders"]]

    return {"refresh-rate": chart.bars("Refreshes a second", "median", of("per_second")),
            "refresh-cpu": chart.bars("Processor time of the client for 1,000 refreshes", "CPU-seconds, median",
                                        of("cpu_per_1000"))}


def goals(figures):
    by_name = {(one["name"], one["version"]): one for one in figures["contenders"]}

    def ratio(key, version, other):
        ours, theirs = by_name[WORKER, version], by_name[other, version]
        return ours[key]["median"] / theirs[key]["median"]

    results = []
    if floor_of(figures) is not None:
        results.append(report.at_most("CPU per 1,000 against the floor, HTTP/2",
                                      ratio("cpu_per_1000", "h2", contenders.FLOOR), contenders.FLOOR_GOAL))
    for version, http in HTTP.items():
        results += [
            report.at_most(f"CPU against Go doing the same work, {http}",
                           ratio("cpu_per_1000", version, GO), 0.8, 0.6),
            report.at_least(f"refreshes/s against the same, {http}", ratio("per_second", version, GO), 1.2),
            report.at_most(f"CPU against Go's bare fetch, {http}",
                           ratio("cpu_per_1000", version, GO_FETCH), 1.2, 1.0),
        ]
        limit = ratio("per_second", version, "h2load")
        results.append((f"refreshes/s against h2load, {http}: at least a third, half if possible", f"{limit:.2f}",
                        limit >= 1 / 3))
    worker = by_name[WORKER, "h2"]
    python = by_name["google-auth (Python), threads", "h1"]["cpu_per_1000"]["median"]
    times = python / worker["cpu_per_1000"]["median"]
    return [
        *results,
        ("CPU, HTTP/2, against google-auth's bare fetch, HTTP/1.1: at most 1/25", f"1/{times:.0f}",
         times >= 25),
        report.at_most("system calls per refresh in a backlog, HTTP/2", worker["system_calls"], 3, shown="{:.1f}"),
        report.at_most(f"peak memory in MB while draining {worker['count']:,} overdue grants, HTTP/2",
                       worker["peak_megabytes"], 48, shown="{:.0f}"),
    ]
