"""After an outage of ten minutes: a million grants overdue, drained in order and at the set pace."""

import collections
import contextlib
import sqlite3

from harness import chart, daemon, endpoint, grants

from .growth import PERIOD

TITLE = "After an outage of ten minutes with a million grants overdue"
OUTAGE = 600
# The pacer's bucket holds the requests of a fifth of a second, which are added (Pacer.swift in Sources/Scheduler).
BURST = 1.2
# The log has the times of the answers: this number of requests, which the worker always allows
# (Sources/Scheduler/Engine/ClaimBackOff.swift), may have been sent a second before.
IN_FLIGHT = 64


def measure(scale, folder):
    overdue, max_rate = scale.pick((1_000_000, 4_000), (2_000, 500))
    with endpoint.Endpoint(folder / "endpoint") as site:
        store = grants.Grants(folder / "grants")
        written = store.fill(int(overdue * PERIOD / OUTAGE), outage=OUTAGE, within=0)
        scale.say(f"{written:,} grants are overdue")
        due_at = instants(store)
        site.start_log()
        with daemon.Daemon(store, site, folder, max_rate=max_rate) as worker:
            worker.wait_for(written, timeout=3 * written / max_rate + 60)
        store.verify_once_each(site.issued, written)
        log = list(endpoint.read_log(site.issued))
    seconds = collections.Counter(int(instant - log[0][0]) for instant, _, _ in log)
    rates = [seconds[second] for second in range(max(seconds) + 1)]
    if max(rates) > max_rate * BURST + IN_FLIGHT:
        raise SystemExit(f"--max-rate {max_rate} let {max(rates)} requests through in one second")
    return {"overdue": written, "max_rate": max_rate, "seconds": log[-1][0] - worker.started,
            "start_to_first_seconds": log[0][0] - worker.started, "rates": rates,
            "out_of_order_seconds": furthest_back(due_at[int(grant)] for _, grant, _ in log) / 1000,
            "cpu_per_1000": worker.cpu_seconds * 1000 / written, "peak_megabytes": worker.peak_megabytes}


def instants(store):
    """The due time of each grant in milliseconds, by its number."""
    with contextlib.closing(sqlite3.connect(store.database)) as connection:
        return {
            int(user.removeprefix("user-")): due
            for user, due in connection.execute("SELECT user_id, due_at FROM grants")
        }


def furthest_back(order):
    """The greatest time by which a grant was due earlier than one before it; 0 if the order is perfect."""
    latest, most = 0, 0
    for due in order:
        latest = max(latest, due)
        most = max(most, latest - due)
    return most


def tables(figures):
    return (
        f"{figures['overdue']:,} grants were overdue. At `--max-rate` {figures['max_rate']:,} they took "
        f"{figures['seconds']:.0f} s, with at most {max(figures['rates']):,} requests in one second. The first was "
        f"sent {figures['start_to_first_seconds'] * 1000:.0f} ms after the start, and none more than "
        f"{figures['out_of_order_seconds']:.1f} s behind a grant that was due later. Cost: "
        f"{figures['cpu_per_1000']:.4f} CPU-s per 1,000, at most {figures['peak_megabytes']:.0f} MB."
    )


def charts(figures):
    rates = figures["rates"]
    return {"outage": chart.lines("Requests in each second after the outage", "requests/s",
                                    [f"{second} s" for second in range(len(rates))],
                                    {"sent": rates, "--max-rate": [figures["max_rate"]] * len(rates)})}


def goals(figures):
    return []
