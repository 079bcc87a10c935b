"""6 Several workers on one PostgreSQL: throughput, the number of calls, and faults."""

import contextlib
import signal
import time

from harness import daemon, endpoint, picture, postgres, report

TITLE = "Several workers on one PostgreSQL server"
# The endpoint's answer takes so long where it and not the processor is to be the limit.
LATENCY = 0.05
# What one worker may have sent, and stored nothing of, when it dies: its places for requests, and one batch of results.
UNSTORED = 64 + 100


def measure(scale, folder):
    with postgres.Server(folder / "server") as server:
        bench = Bench(scale, folder, server)
        return {
            "local": bench.crews([1, 2, 4], count=scale.pick(40_000, 600), latency=0),
            "distant": bench.crews([1, 2], count=scale.pick(30_000, 2_000), latency=LATENCY),
            "faults": [bench.fault(name, act) for name, act in [
                ("kill -9 of one of two workers", kill), ("SIGSTOP of one of two workers", stop),
                ("restart of the database", restart)]],
        }


class Bench:
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
    def crew(stack, size, site, store, place):
        workers = []
        for number in range(size):
            own = place / f"worker-{number}"
            own.mkdir()
            workers.append(stack.enter_context(daemon.Daemon(store, site, own)))
        return workers

    def crews(self, sizes, count, latency):
        """What one worker does, and several."""
        rows = []
        for size in sizes:
            with self.site(count, latency) as (site, store, place), contextlib.ExitStack() as stack:
                workers = self.crew(stack, size, site, store, place)
                workers[0].wait_for(count, timeout=300)
                stack.close()
                store.verify_once_each(site.issued, count)
                answers, seconds = endpoint.span(site.issued)
                rows.append({"workers": size, "per_second": answers / seconds, "calls": answers, "due": count,
                             "cpu_per_1000": sum(worker.cpu_seconds for worker in workers) * 1000 / count})
                self.scale.say(str(rows[-1]))
        return rows

    def fault(self, name, act):
        """Something happens to two workers in the middle of their work; how long until all is done again."""
        count = self.scale.pick(30_000, 3_000)
        with self.site(count, LATENCY) as (site, store, place), contextlib.ExitStack() as stack:
            workers = self.crew(stack, 2, site, store, place)
            workers[0].wait_for(count // 4, timeout=120)
            instant, undo = act(workers, self.server)
            workers[1].wait_for_grants(count, timeout=240)
            undo()
            stack.close()
            found = store.verify(site.issued)
            instants = [at for at, _, _ in endpoint.read_log(site.issued)]
        if found["refreshed"] != count or found["issued"] - count > UNSTORED:
            raise SystemExit(f"{name}: {count} grants were due, and this became of them: {found}")
        pauses = [later - at for at, later in zip(instants, instants[1:]) if later > instant]
        row = {"fault": name, "due": count, "calls": found["issued"], "asked_twice": found["issued"] - count,
               "most_calls_of_one": found["most"], "until_all_done_seconds": max(instants) - instant,
               "longest_pause_seconds": max(pauses)}
        self.scale.say(str(row))
        return row


def kill(workers, _):
    return time.time(), workers[0].kill()


def stop(workers, _):
    workers[0].process.send_signal(signal.SIGSTOP)

    def wake():
        workers[0].process.send_signal(signal.SIGCONT)
        # What it was told before it stood still, it now tries to store.
        time.sleep(3)

    return time.time(), wake


def restart(_, server):
    instant = time.time()
    server.stop("fast")
    server.start()
    return instant, lambda: None


def tables(figures):
    rows = lambda key: [[row["workers"], f"{row['per_second']:,.0f}", f"{row['per_second'] / figures[key][0]['per_second']:.2f}",
                         f"{row['cpu_per_1000']:.4f}", f"{row['due']:,}", f"{row['calls']:,}"] for row in figures[key]]
    head = ["workers", "refreshes/s together", "times one worker", "CPU-s per 1,000, workers alone", "grants due", "calls"]
    faults = [[row["fault"], f"{row['until_all_done_seconds']:.1f}", f"{row['longest_pause_seconds']:.1f}",
               f"{row['due']:,}", f"{row['calls']:,}", row["most_calls_of_one"]] for row in figures["faults"]]
    return ("Endpoint, server and workers share the processors, so that more workers cannot do much more:\n\n"
            + report.table(head, rows("local"))
            + f"\n\nThe endpoint answers after {LATENCY * 1000:.0f} ms, and is the limit:\n\n"
            + report.table(head, rows("distant"))
            + "\n\nA fault when a quarter is done, at the same latency. A lease lasts 30 s. A call more than grants due is that "
            "of an answer which the fault kept from being stored.\n\n"
            + report.table(["fault", "until all was done, s", "longest pause between two answers, s", "grants due", "calls",
                            "most calls for one grant"], faults))


def pictures(figures):
    return {"postgres": picture.bars("Workers on one PostgreSQL", "refreshes/s together", [
        (f"refresh-worker x {row['workers']}, {name}", row["per_second"])
        for key, name in [("local", "0 ms"), ("distant", "50 ms")] for row in figures[key]])}


def goals(figures):
    one, two = figures["distant"]
    gain = two["per_second"] / one["per_second"]
    calls = all(row["calls"] == row["due"] for key in ["local", "distant"] for row in figures[key])
    return [("two workers on PostgreSQL against one at 50 ms of latency: at least 1.8 times", f"{gain:.2f} times", gain >= 1.8),
            ("calls for a grant: one per due instant, or explained by a lost answer",
             f"one each; after faults {', '.join(str(row['asked_twice']) for row in figures['faults'])} lost answers", calls)]
