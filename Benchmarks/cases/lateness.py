"""The lateness of refreshes at a tenth, at half and at nine tenths of the worker's throughput."""

import shutil
import time

from harness import chart, contenders, daemon, endpoint, grants, report

from .growth import PERIOD

TITLE = "Lateness: from the instant at which a grant is due to its request"
FRACTIONS = [0.1, 0.5, 0.9]
QUANTILES = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("most", 1)]


def measure(scale, folder):
    seconds = scale.pick(60, 4)
    with endpoint.Endpoint(folder / "endpoint") as site:
        place = folder / "throughput"
        place.mkdir()
        full = contenders.Worker("h2").run(site, scale.pick(60_000, 1_000), place)["per_second"]
        scale.say(f"all that is due at once: {full:,.0f}/s")
        # A fast worker needs tens of millions of ids, which take minutes.
        full = scale.pick(full, min(full, 500))
        rows = []
        for fraction in scale.pick(FRACTIONS, FRACTIONS[-1:]):
            place = folder / str(fraction)
            place.mkdir()
            rows.append({"fraction": fraction, **at_rate(site, place, full * fraction, seconds)})
            scale.say(str(rows[-1]))
            shutil.rmtree(place)
    return {"throughput": full, "seconds": seconds, "rows": rows}


def at_rate(site, folder, rate, seconds):
    """The grants of a large population that come due within the given number of seconds."""
    population = int(rate * PERIOD)
    # Most of a large population is not written, but its ids are made and sorted first. A fast run has a population of
    # thirty million: the estimate leaves a slow machine enough time for it.
    start = time.time() + population / 500_000 + rate * seconds / 8_000 + 5
    store = grants.Grants(folder / "grants")
    written = store.fill(population, start=start, within=seconds)
    site.start_log()
    late = time.time() + 1 - start
    if late > 0:
        raise SystemExit(f"the grants were written {late:.0f} s too late")
    # The worker has settled when the first grant comes due.
    time.sleep(start - time.time() - 1)
    with daemon.Daemon(store, site, folder) as worker:
        worker.wait_for(written, timeout=seconds + 60)
    store.verify_once_each(site.issued, written)
    lateness = worker.lateness()
    if len(lateness) != written:
        raise SystemExit(f"{written} grants came due, and the metrics log has {len(lateness)}")
    return {"offered_per_second": written / seconds, "refreshes": written,
            "lateness_ms": {name: daemon.quantile(lateness, fraction) for name, fraction in QUANTILES}}


def tables(figures):
    rows = [[f"{row['fraction']:.0%}", f"{row['offered_per_second']:,.0f}",
             *(row["lateness_ms"][name] for name, _ in QUANTILES)] for row in figures["rows"]]
    return (
        f"All grants due at once: {figures['throughput']:,.0f}/s. Then a fraction of that came due at random instants, "
        f"for {figures['seconds']} s each.\n\n"
        + report.table(["of the throughput", "due/s", *(f"{name} ms" for name, _ in QUANTILES)], rows)
    )


def charts(figures):
    labels = [f"{row['fraction']:.0%} of the throughput" for row in figures["rows"]]
    return {"lateness": chart.bars("Lateness of a refresh", "milliseconds", [
        (f"{label}, {name}", row["lateness_ms"][name])
        for label, row in zip(labels, figures["rows"], strict=True) for name, _ in QUANTILES[:3]])}


def goals(figures):
    return []
