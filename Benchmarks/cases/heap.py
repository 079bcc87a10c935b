"""The heap of deadlines against those of C++ and Go."""

import json
import statistics

from harness import chart, measuring, paths, programs, report

TITLE = "The heap of deadlines: push, move and pop"
OPERATIONS = [("push_ns", "push"), ("move_ns", "move"), ("pop_ns", "pop")]


def measure(scale, folder):
    cpp = folder / "priority_queue"
    programs.call("c++", "-O2", "-std=c++17", "-o", cpp, paths.BENCHMARKS / "peers" / "priority_queue.cpp")
    heaps = {
        "refresh-worker's DeadlineHeap": [paths.SEED, "heap", "--entries"],
        "std::priority_queue (C++)": [cpp],
        "container/heap (Go)": [programs.build_go("container_heap")],
    }
    rows = []
    for count in scale.pick([1_000_000, 10_000_000], [20_000]):
        runs = {name: [] for name in heaps}
        for _ in range(scale.pick(3, 1)):
            for name, words in heaps.items():
                runs[name].append(run_heap(words, count))
        sums = {run["sum"] for of in runs.values() for run in of}
        if len(sums) != 1:
            raise SystemExit(f"the three did not pop the same deadlines: {runs}")
        for name, of in runs.items():
            rows.append({"entries": count, "name": name,
                         **{key: statistics.median(run[key] for run in of) for key in of[0] if key != "sum"}})
            scale.say(str(rows[-1]))
    return {"rows": rows}


def run_heap(words, count):
    cost = measuring.run([*words, count])
    if cost.exit_code != 0:
        raise SystemExit(f"{words[0]} {count} ended with {cost.exit_code}")
    return json.loads(cost.output)


def tables(figures):
    most = max(row["entries"] for row in figures["rows"])
    rows = [[row["name"], f"{row['entries']:,}", *(f"{row[key]:.0f}" for key, _ in OPERATIONS), f"{row['bytes']:.0f}"]
            for row in figures["rows"] if row["entries"] == most]
    return (
        "Medians of three rounds: all entries are pushed, a million moved, a million popped. The queue of C++ cannot "
        "move an entry: it pushes another one and skips the old one.\n\n"
        + report.table(["heap", "entries", *(f"{name} ns" for _, name in OPERATIONS), "bytes per entry"], rows)
    )


def charts(figures):
    return {"heap": chart.bars("The heap of deadlines", "nanoseconds per operation", [
        (f"{row['name'].replace(chr(39) + 's DeadlineHeap', '')}, {row['entries'] // 1_000_000} M, {name}", row[key])
        for row in figures["rows"] for key, name in OPERATIONS])}


def goals(figures):
    return []
