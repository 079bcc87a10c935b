"""Several workers on one PostgreSQL: throughput, the number of calls, and faults."""

import contextlib
import itertools
import signal
import time

from harness import chart, daemon, endpoint, measuring, postgres, report

TITLE = "Several workers on one PostgreSQL server"
# The latency of the endpoint in seconds. At --max-rate 100000 a worker has 512 refreshes in flight
# (EngineConfiguration.defaultMaximumInFlight): with 50 ms the processors are still the limit, with a second the
# endpoint is.
LATENCIES = [0, 0.05, 1]
# The distance of the server in seconds, for each direction of a message, with the endpoint at AWAY_LATENCY.
DISTANCES = [0.002, 0.01]
AWAY_LATENCY = 0.05
# The time that a synchronous standby adds to each commit, and the rate at which two workers then send.
STANDBY_SECONDS = 0.2
STANDBY_RATE = 1_000
# A fault can only lose answers that were given at most this many seconds before it and were not yet stored.
UNSTORED = 5


def measure(scale, folder):
    with postgres.Server(folder / "server") as server:
        measurements = Measurements(scale, folder, server)
        return {
            "throughput": [row for latency in scale.pick(LATENCIES, [AWAY_LATENCY])
                           for row in measurements.throughput(latency)],
            "away": [row for distance in scale.pick(DISTANCES, DISTANCES[:1])
                     for row in measurements.throughput(AWAY_LATENCY, distance)],
            "standby": measurements.standby(),
            # If one of two workers is gone, half a minute passes: in a short run one such fault is enough.
            "faults": [measurements.fault(name, act) for name, act in scale.pick(FAULTS, [FAULTS[0], FAULTS[2]])],
            "day": measurements.day(),
        }


class Measurements:
    """One server, and a new database for each measurement."""

    def __init__(self, scale, folder, server):
        self.scale, self.folder, self.server = scale, folder, server
        self.number = 0

    @contextlib.contextmanager
    def site(self, count, latency):
        """An endpoint, and grants that are all due."""
        self.number += 1
        place = self.folder / str(self.number)
        place.mkdir()
        with endpoint.Endpoint(place / "endpoint", delay_seconds=latency) as site:
            store = postgres.ServerGrants(place / "grants", self.server, f"bench_{self.number}")
            store.fill(count, outage=3600)
            site.start_log()
            yield site, store, place

    @staticmethod
    def start_workers(stack, count, site, store, place, **settings):
        workers = []
        for number in range(count):
            own = place / f"worker-{number}"
            own.mkdir()
            workers.append(stack.enter_context(daemon.Daemon(store, site, own, **settings)))
        return workers

    def throughput(self, latency, distance=0):
        """The throughput of one worker and of several, which are this far from the server."""
        count = self.scale.pick(30_000, 2_000)
        rows = []
        for size in self.scale.pick([1, 2, 4], [1, 2]):
            with self.site(count, latency) as (site, store, place):
                with store.away(distance) as proxy, contextlib.ExitStack() as stack:
                    workers = self.start_workers(stack, size, site, store, place)
                    workers[0].wait_for(count, timeout=300)
                store.verify_once_each(site.issued, count)
                answers, seconds = endpoint.span(site.issued)
                rows.append(
                    {
                        "latency": latency,
                        "workers": size,
                        "per_second": answers / seconds,
                        "calls": answers,
                        "due": count,
                        "cpu_per_1000": sum(worker.cpu_seconds for worker in workers) * 1000 / count,
                    }
                )
                if proxy:
                    rows[-1].update(distance=distance, round_trips_per_1000=proxy.round_trips * 1000 / count)
                self.scale.say(str(rows[-1]))
        return rows

    def standby(self):
        """The throughput of two workers while each commit waits for a distant standby."""
        count = self.scale.pick(10_000, 1_000)
        with self.site(count, latency=0.01) as (site, store, place):
            with self.server.confirmed_by_standby(STANDBY_SECONDS / 2), contextlib.ExitStack() as stack:
                workers = self.start_workers(stack, 2, site, store, place, max_rate=STANDBY_RATE)
                workers[0].wait_for(count, timeout=300)
            store.verify_once_each(site.issued, count)
            answers, seconds = endpoint.span(site.issued)
        row = {"workers": 2, "calls": answers, "due": count, "per_second": answers / seconds}
        self.scale.say(str(row))
        return row

    def fault(self, name, act):
        """Applies a fault to two workers during their work; measures the time until all is done."""
        # Enough that work is left when the fault comes, also on a busy machine.
        count = self.scale.pick(30_000, 9_000)
        with self.site(count, 0.05) as (site, store, place), contextlib.ExitStack() as stack:
            workers = self.start_workers(stack, 2, site, store, place)
            workers[0].wait_for(count // 4, timeout=120)
            instant, undo = act(workers, self.server)
            wait_until_none_is_due(store, timeout=240)
            undo()
            stack.close()
            outcome = store.verify(site.issued)
            log = list(endpoint.read_log(site.issued))
        unexplained = [grant for grant, at in repeated(log) if not instant - UNSTORED < at < instant + UNSTORED]
        if outcome["refreshed"] != count or unexplained:
            raise SystemExit(
                f"{name}: {count} grants were due; the outcome: {outcome}; {len(unexplained)} were "
                f"asked for again although no answer was lost, as {unexplained[:3]}"
            )
        instants = [at for at, _, _ in log]
        pauses = [later - at for at, later in itertools.pairwise(instants) if later > instant]
        if not pauses:
            raise SystemExit(
                f"{name}: all {count} grants were refreshed before the fault came; run it on a quieter machine"
            )
        row = {"fault": name, "due": count, "calls": outcome["issued"], "asked_twice": outcome["issued"] - count,
               "most_calls_of_one": outcome["most"], "until_all_done_seconds": max(instants) - instant,
               "longest_pause_seconds": max(pauses)}
        self.scale.say(str(row))
        return row


    def day(self):
        """A day of hourly refreshes, done without a pause: its effect on the tables.

        The server checks for dead rows once a second, its minimum, which is less often for such a short day than once a
        minute is for a real one.
        """
        count, hours = self.scale.pick((50_000, 24), (500, 2))
        store = postgres.ServerGrants(self.folder / "day", self.server, "day")
        store.fill(count, outage=3600)
        for statement in ["ALTER SYSTEM SET autovacuum_naptime = 1", "SELECT pg_reload_conf()"]:
            self.server.rows("day", statement)
        sizes = [(0, self.sizes())]
        for hour in range(1, hours + 1):
            done = store.exercise(count, ahead=3600 * hour)
            if done["grants"] != count:
                raise SystemExit(f"in hour {hour} {done['grants']} of {count} grants were refreshed")
            if hour % 6 == 0 or hour == hours:
                sizes.append((hour, self.sizes()))
        self.scale.say(f"day: {sizes}")
        return {"grants": count, "hours": hours, "sizes": sizes}

    def sizes(self):
        """Of the two tables that every refresh writes: megabytes with indexes, dead rows, and the fraction of heap-only
        updates."""
        rows = self.server.rows("day", """
            SELECT relname, pg_total_relation_size(relid), n_dead_tup, n_tup_upd, n_tup_hot_upd
            FROM pg_stat_user_tables WHERE relname IN ('grants', 'grant_schedule')""")
        return {name: {"megabytes": int(size) / 1e6, "dead": int(dead), "updates": int(updates),
                       "heap_only": int(heap_only) / max(1, int(updates))}
                for name, size, dead, updates, heap_only in rows}


def wait_until_none_is_due(store, timeout):
    """Waits until no grant is due: an answer that was not stored leaves its grant due."""
    measuring.wait_for(lambda: store.due() == 0, timeout, "no grant is due", pause=0.5)


def repeated(log):
    """The grants that were refreshed again, each with the time of the previous answer."""
    last = {}
    for at, grant, _ in log:
        if grant in last:
            yield grant, last[grant]
        last[grant] = at


def kill(workers, _):
    return time.time(), workers[0].kill()


def stop(workers, _):
    workers[0].process.send_signal(signal.SIGSTOP)

    def wake():
        workers[0].process.send_signal(signal.SIGCONT)
        # It now tries to store the answers that it received before it was stopped.
        time.sleep(3)

    return time.time(), wake


def restart(_, server):
    instant = time.time()
    server.stop("fast")
    server.start()
    return instant, lambda: None


FAULTS = [("kill -9 of one of two workers", kill), ("SIGSTOP of one of two workers", stop),
          ("restart of the database", restart)]


def gain(rows, size):
    """The throughput of several workers as a multiple of that of one."""
    rates = {row["workers"]: row["per_second"] for row in rows}
    return rates[size] / rates[1]


def near(figures, latency):
    return [row for row in figures["throughput"] if row["latency"] == latency]


def away(figures, distance):
    return [row for row in figures.get("away", []) if row["distance"] == distance]


def standby_sentence(row):
    """Figures of before this measurement have none."""
    if not row:
        return ""
    return (
        f"\n\nWhile each commit waits {STANDBY_SECONDS * 1000:.0f} ms for a synchronous standby, two workers with "
        f"`--max-rate {STANDBY_RATE}` make {row['per_second']:,.0f} refreshes a second."
    )


def tables(figures):
    def rates(name, rows):
        several = (f"{row['per_second']:,.0f} ({gain(rows, row['workers']):.2f})" for row in rows[1:])
        return [name, f"{rows[0]['per_second']:,.0f}", *several]

    throughput = [rates(f"endpoint {latency * 1000:.0f} ms", near(figures, latency)) for latency in LATENCIES]
    far = [rates(f"endpoint {AWAY_LATENCY * 1000:.0f} ms, server {distance * 1000:.0f} ms each way",
                 away(figures, distance)) for distance in DISTANCES if away(figures, distance)]
    workers = [row["workers"] for row in near(figures, LATENCIES[0])]
    faults = [[row["fault"], f"{row['until_all_done_seconds']:.1f}", f"{row['longest_pause_seconds']:.1f}",
               f"{row['calls']:,}"] for row in figures["faults"]]
    sizes = [of for _, of in figures["day"]["sizes"]]
    hours = ", ".join(str(hour) for hour, _ in figures["day"]["sizes"])
    day = [[name, ", ".join(f"{of[name]['megabytes']:.0f}" for of in sizes), f"{last['dead']:,}",
            f"{last['heap_only']:.0%}"] for name, last in sorted(sizes[-1].items())]
    return (
        "Refreshes a second by the number of workers, and in brackets as a multiple of one worker's. Endpoint, server "
        "and workers share the processors.\n\n"
        + report.table(["latency", *workers], throughput + far)
        + standby_sentence(figures.get("standby"))
        + f"\n\nA fault when a quarter of {figures['faults'][0]['due']:,} grants is done, at 50 ms of latency. A lease "
        "lasts 30 s. A grant whose answer could not be stored is refreshed again.\n\n"
        + report.table(["fault", "until all was done, s", "longest pause, s", "calls"], faults)
        + f"\n\nA day of hourly refreshes of {figures['day']['grants']:,} grants, done without a pause:\n\n"
        + report.table(["table", f"MB after {hours} hours", "dead rows", "heap-only updates"], day)
    )


def charts(figures):
    return {"postgres": chart.bars("Workers on one PostgreSQL", "refreshes/s together", [
        (f"refresh-worker x {row['workers']}, {row['latency'] * 1000:.0f} ms", row["per_second"])
        for row in figures["throughput"]] + [
        (f"refresh-worker x {row['workers']}, server {row['distance'] * 1000:.0f} ms away", row["per_second"])
        for row in figures.get("away", [])])}


def goals(figures):
    gains = [(f"two workers against one, endpoint {latency * 1000:.0f} ms: at least 1.8 times",
              f"{gain(near(figures, latency), 2):.2f} times", gain(near(figures, latency), 2) >= 1.8)
             for latency in LATENCIES[1:]]
    for place, rows, goal in [("endpoint 0 ms", near(figures, 0), 1.2), ("server 2 ms away", away(figures, 0.002), 1.8),
                              ("server 10 ms away", away(figures, 0.01), 3.5)]:
        if any(row["workers"] == 4 for row in rows):
            gains.append((f"four workers against one, {place}: at least {goal} times",
                          f"{gain(rows, 4):.2f} times", gain(rows, 4) >= goal))
    standby = figures.get("standby")
    if standby:
        gains.append((f"two workers, each commit waits {STANDBY_SECONDS * 1000:.0f} ms for a standby: at least 390/s",
                      f"{standby['per_second']:,.0f}/s", standby["per_second"] >= 390))
    calls = all(row["calls"] == row["due"] for row in figures["throughput"])
    lost = ", ".join(f"{row['asked_twice']} after {row['fault']}" for row in figures["faults"])
    return [*gains, ("one call for a grant, unless an answer was lost",
                     f"again after a lost answer: {lost}", calls)]
