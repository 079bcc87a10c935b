"""The cost of a refresh as the store grows, and the largest store held for ten minutes."""

import shutil
import time

from harness import chart, daemon, endpoint, grants, report, status_page

TITLE = "The cost as work grows, from ten thousand to ten million stored grants"
# The time between two refreshes of a grant whose access tokens live an hour; the due grants are counted.
PERIOD = 3000
# The largest store is started earlier than the previous speed suggests, by this factor: indexes grow faster than
# stores.
LEAD = 1.3
# Half of the CPU-seconds that 1,000 refreshes of the steady state took at first.
STEADY_CPU = 0.0665


def measure(scale, folder):
    sizes = scale.pick([10_000, 100_000, 1_000_000, 10_000_000], [500, 20_000])
    sample = scale.pick(60_000, 300)
    rows, held, speed = [], None, 10_000
    for size in sizes:
        place = folder / str(size)
        place.mkdir()
        with endpoint.Endpoint(place / "endpoint") as site:
            store = grants.Grants(place / "grants")
            if size == sizes[-1]:
                start = time.time() + size / speed * LEAD + 3
                fill(scale, store, size, start, outage=0)
                site.start_log()
                held = hold(store, site, place, start, scale.pick(600, 5), pages=scale.pick(300, 30))
                scale.say(f"held: {held}")
                # The grants that come due while no worker runs are the sample.
                time.sleep(scale.pick(PERIOD * sample / size, 10))
            else:
                speed = fill(scale, store, size, time.time(), outage=min(PERIOD * 1.2, PERIOD * sample / size))
                site.start_log()
            row = catch_up(store, site, place)
            store.verify_once_each(site.issued)
            row["store"] = store.exercise(scale.pick(20_000, 100))
            scale.say(f"{size:,} grants: {row}")
            rows.append({"grants": size, **row})
        shutil.rmtree(place)
    return {"rows": rows, "held": held}


def fill(scale, store, size, start, outage):
    """Writes the grants, and returns the number per second."""
    began = time.time()
    store.fill(size, start=start, outage=int(outage))
    seconds = time.time() - began
    scale.say(f"{size:,} grants written in {seconds:.0f} s")
    return size / seconds


def hold(store, site, folder, start, seconds, pages):
    """The steady state for a while, from the instant at which the first grant is due."""
    late = time.time() - start
    time.sleep(max(0, -late))
    listener = folder / "internal.sock"
    with daemon.Daemon(store, site, folder, more=["--listen-internal", f"unix:{listener}"]) as worker:
        # The measured time; a person looks at the status page in the middle of it.
        end = time.time() + seconds
        time.sleep(seconds / 2)
        page = status_page.ask(listener, pages, pause=0.05)
        time.sleep(max(0, end - time.time()))
        resident = worker.resident_megabytes()
        cached = daemon.cached_megabytes(store.database)
        ended = time.time()
    overdue = store.due(ended)
    lateness = worker.lateness()
    answers = worker.count()
    if len(lateness) != answers:
        raise SystemExit(f"the endpoint answered {answers} times, and the metrics log has {len(lateness)}")
    worker.metrics.unlink()
    return {"seconds": seconds, "refreshes": answers, "per_second": answers / seconds, "begun_late": max(0, late),
            "cpu_per_1000": worker.cpu_seconds * 1000 / answers, "peak_megabytes": worker.peak_megabytes,
            "resident_megabytes": resident, "file_cache_megabytes": cached, "overdue_at_end": overdue,
            "page": page, "lateness_ms": {name: daemon.quantile(lateness, fraction)
                            for name, fraction in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("most", 1)]}}


def catch_up(store, site, folder):
    """A worker that is started on a store with overdue grants, none of it in the kernel's cache."""
    due = store.due()
    before, _ = endpoint.span(site.issued)
    daemon.drop_file_cache(store.database)
    with daemon.Daemon(store, site, folder) as worker:
        worker.wait_for(before + due, timeout=600)
    instants = [instant for instant, _, _ in endpoint.read_log(site.issued)][before:]
    answers = len(instants)
    return {"due": due, "refreshes": answers, "per_second": answers / (instants[-1] - instants[0]),
            "cpu_per_1000": worker.cpu_seconds * 1000 / answers, "peak_megabytes": worker.peak_megabytes,
            "start_to_first_seconds": instants[0] - worker.started, "database_megabytes": store.bytes() / 2**20}


def tables(figures):
    rows = [[f"{row['grants']:,}", f"{row['per_second']:,.0f}", f"{row['cpu_per_1000']:.4f}",
             f"{row['peak_megabytes']:.0f}", f"{row['database_megabytes']:,.0f}",
             f"{row['start_to_first_seconds'] * 1000:.0f}", f"{row['store']['claim']['cpu_us']:.0f}",
             f"{row['store']['commit']['cpu_us']:.0f}"] for row in figures["rows"]]
    head = ["grants", "refreshes/s", "CPU-s per 1,000", "peak MB", "database MB", "start to first, ms",
            "claim, us of CPU", "commit, us of CPU"]
    held = figures["held"]
    late = held["lateness_ms"]
    return (
        "A worker starts on a store of which up to 60,000 grants are overdue and nothing is in the kernel's cache. "
        "Claim and commit are the store's alone, for one of a hundred grants.\n\n"
        + report.table(head, rows)
        + f"\n\nThe steady state of {figures['rows'][-1]['grants']:,} grants, held for {held['seconds']} s: "
        f"{held['per_second']:,.0f} refreshes/s, {held['cpu_per_1000']:.4f} CPU-s per 1,000, at most "
        f"{held['peak_megabytes']:.0f} MB in memory, and {held['file_cache_megabytes']:,.0f} MB of the database in the "
        f"kernel's cache. Lateness in ms: p50 {late['p50']}, p99 {late['p99']}, p99.9 {late['p99.9']}, most "
        f"{late['most']}." + page_text(held.get("page"))
    )


def page_text(page):
    """The figures of the status page; none for a run that did not measure it."""
    if page is None:
        return ""
    times = ", ".join(f"{name} {ms:.1f}" for name, ms in [("first", page["first_ms"]), *page["ms"].items()])
    return f" The status page in ms: {times}, and {page['bytes'] / 1000:.1f} KB."


def charts(figures):
    labels = [f"{row['grants']:,}" for row in figures["rows"]]

    def of(read):
        return [read(row) for row in figures["rows"]]

    return {
        "growth-rate": chart.lines("Refreshes a second by stored grants", "refreshes/s", labels, {
            "refresh-worker": of(lambda row: row["per_second"])}),
        "growth-cost": chart.lines("Processor time of one grant by stored grants", "microseconds", labels, {
            "whole refresh": of(lambda row: row["cpu_per_1000"] * 1000),
            "claim": of(lambda row: row["store"]["claim"]["cpu_us"]),
            "commit": of(lambda row: row["store"]["commit"]["cpu_us"])}),
    }


def goals(figures):
    first, last, held = figures["rows"][0], figures["rows"][-1], figures["held"]

    def cost(row):
        return row["store"]["claim"]["cpu_us"] + row["store"]["commit"]["cpu_us"]

    due = last["grants"] / PERIOD
    p99 = held["lateness_ms"]["p99"]
    return [
        (
            f"{last['grants']:,} grants held for ten minutes, p99 lateness under 1 s",
            f"{held['per_second']:,.0f} refreshes/s of {due:,.0f}, p99 {p99} ms",
            p99 < 1000 and held["overdue_at_end"] < due,
        ),
        report.at_most(
            f"CPU-s per 1,000 refreshes in the steady state of {last['grants']:,} grants",
            held["cpu_per_1000"],
            STEADY_CPU,
            shown="{:.4f}",
        ),
        (
            f"resident memory at {last['grants']:,} grants under 256 MB",
            f"{held['peak_megabytes']:.0f} MB",
            held["peak_megabytes"] < 256,
        ),
        (
            f"start to first refresh at {last['grants']:,} grants under 1 s",
            f"{last['start_to_first_seconds']:.2f} s",
            last["start_to_first_seconds"] < 1,
        ),
        *page_goals(last["grants"], held.get("page")),
        (
            f"claim and commit of a grant at {last['grants']:,} against {first['grants']:,}: at most twice",
            f"{cost(last) / cost(first):.2f} times",
            cost(last) <= 2 * cost(first),
        ),
    ]


def page_goals(grants, page):
    if page is None:
        return []
    p99 = page["ms"]["p99"]
    return [
        (
            f"status page at {grants:,} grants in under 5 ms and 50 KB",
            f"p99 {p99:.1f} ms, {page['bytes'] / 1000:.0f} KB",
            p99 < 5 and page["bytes"] < 50_000,
        )
    ]
