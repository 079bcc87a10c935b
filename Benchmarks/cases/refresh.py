"""1 Refreshes a second, and the processor time of the client alone."""

import shutil
import statistics

from harness import contenders, endpoint

TITLE = "Refreshes a second, and what each costs"


def measure(scale, folder):
    rounds, count = scale.pick(3, 1), scale.pick(60_000, 1_000)
    everybody = contenders.everybody()
    runs = {(one.name, one.version): [] for one in everybody}
    with endpoint.Endpoint(folder / "endpoint") as site:
        for turn in range(rounds):
            for one in everybody:
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
    """The best and the median of the rounds: the best is what the other programs of the machine disturbed least."""
    of = lambda key: [run[key] for run in runs]
    return {"name": name, "version": version,
            "per_second": {"best": max(of("per_second")), "median": statistics.median(of("per_second"))},
            "cpu_per_1000": {"best": min(of("cpu_per_1000")), "median": statistics.median(of("cpu_per_1000"))},
            "peak_megabytes": max(of("peak_megabytes"))}
