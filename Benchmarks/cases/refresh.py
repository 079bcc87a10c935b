"""Refreshes a second, and the processor time of the client only."""

import shutil
import statistics

from harness import chart, contenders, endpoint, report

TITLE = "Refreshes a second, and what each costs"


def measure(scale, folder):
    rounds, count = scale.pick(3, 1), scale.pick(60_000, 1_000)
    programs = contenders.all_contenders()
    runs = {(one.name, one.version): [] for one in programs}
    with endpoint.Endpoint(folder / "endpoint") as site:
        for turn in range(rounds):
            for one in programs:
                place = folder / f"turn-{turn}"
                place.mkdir()
                figures = one.run(site, count, place)
                shutil.rmtree(place)
                scale.say(f"{one.name} {one.version}: {figures['per_second']:.0f}/s, "
                          f"{figures['cpu_per_1000']:.4f} CPU-s for 1000, {figures['peak_megabytes']:.0f} MB")
                runs[one.name, one.version].append(figures)
    return {"rounds": rounds, "count": count,
            "contenders": [summary(name, version, all_runs) for (name, version), all_runs in runs.items()]}


def summary(name, version, runs):
    """The best and the median of the rounds: the best round was least disturbed by other programs of the machine."""
    def of(key):
        return [run[key] for run in runs]

    return {"name": name, "version": version,
            "per_second": {"best": max(of("per_second")), "median": statistics.median(of("per_second"))},
            "cpu_per_1000": {"best": min(of("cpu_per_1000")), "median": statistics.median(of("cpu_per_1000"))},
            "peak_megabytes": max(of("peak_megabytes"))}


def tables(figures):
    rows = [[f"{one['name']}, HTTP/{'2' if one['version'] == 'h2' else '1.1'}",
             f"{one['per_second']['best']:,.0f}", f"{one['per_second']['median']:,.0f}",
             f"{one['cpu_per_1000']['best']:.4f}", f"{one['cpu_per_1000']['median']:.4f}",
             f"{one['peak_megabytes']:.0f}"] for one in figures["contenders"]]
    return (
        f"{figures['rounds']} rounds in turns, {figures['count']:,} grants each, fewer for Python. The worker claims, "
        "opens, requests, seals and commits durably; all others only send requests. Times are from the "
        "endpoint's log.\n\n"
        + report.table(["client", "refreshes/s, best", "median", "CPU-s per 1,000, best", "median", "peak MB"], rows)
    )


def charts(figures):
    def label(one):
        return f"{one['name']}, {one['version']}"

    def of(key):
        return [(label(one), one[key]["median"]) for one in figures["contenders"]]

    return {"refresh-rate": chart.bars("Refreshes a second", "median", of("per_second")),
            "refresh-cpu": chart.bars("Processor time of the client for 1,000 refreshes", "CPU-seconds, median",
                                        of("cpu_per_1000"))}


def goals(figures):
    def of(name, version, key):
        return next(
            one[key]["median"] for one in figures["contenders"] if (one["name"], one["version"]) == (name, version))

    results = []
    for version, name in [("h1", "HTTP/1.1"), ("h2", "HTTP/2")]:
        ratio = of("refresh-worker", version, "cpu_per_1000") / of("x/oauth2 (Go)", version, "cpu_per_1000")
        results.append(
            (
                f"CPU-seconds per refresh over {name} against Go's bare fetch: at most equal",
                f"{ratio:.2f} times",
                ratio <= 1,
            )
        )
        limit = of("refresh-worker", version, "per_second") / of("h2load", version, "per_second")
        results.append((f"refreshes/s over {name} against h2load: at least a third, half if possible", f"{limit:.2f}",
                      limit >= 1 / 3))
    python = of("refresh-worker", "h1", "cpu_per_1000") / of("google-auth (Python), threads", "h1", "cpu_per_1000")
    results.append(
        ("CPU against google-auth's bare fetch: at most a fifteenth", f"1/{1 / python:.1f}", python <= 1 / 15))
    return results
