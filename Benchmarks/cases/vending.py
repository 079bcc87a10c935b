"""The rate of vending valid tokens."""

import os
import re

from harness import chart, paths, programs, report

TITLE = "Vending: valid tokens a second, handed to a service"
LINE = re.compile(
    r"^(/healthz|tokens): .*: (\d+) a second, p50 ([\d.]+) ms, p99 ([\d.]+) ms.*, ([\d.]+) us of CPU each$", re.M
)


def measure(scale, folder):
    rows = []
    for connections in scale.pick([8, 32], [8]):
        for _ in range(scale.pick(3, 1)):
            environment = {**os.environ, "BINARIES": str(paths.PROGRAMS), "TMPDIR": str(folder)}
            words = [scale.pick(8, 1), connections, scale.pick(1_000, 50)]
            output = programs.call(paths.BENCHMARKS / "Vending" / "run", *words, env=environment)
            scale.say(output.strip())
            lines = {what: [float(figure) for figure in figures] for what, *figures in LINE.findall(output)}
            rate, p50, p99, cpu = lines["tokens"]
            rows.append({"connections": connections, "per_second": rate, "p50_ms": p50, "p99_ms": p99, "cpu_us": cpu,
                         "healthz_per_second": lines["/healthz"][0], "healthz_cpu_us": lines["/healthz"][3]})
    return {"rows": rows}


def tables(figures):
    by_connections = {}
    for row in figures["rows"]:
        by_connections.setdefault(row["connections"], []).append(row)
    medians = [sorted(rounds, key=lambda row: row["per_second"])[len(rounds) // 2]
               for rounds in by_connections.values()]
    rows = [[row["connections"], f"{row['per_second']:,.0f}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}",
             f"{row['cpu_us']:.1f}", f"{row['healthz_cpu_us']:.1f}"] for row in medians]
    return ("The median of the rounds. `/healthz` reads and writes nothing, so it shows the speed of the machine.\n\n"
            + report.table(["connections", "tokens/s", "p50 ms", "p99 ms", "CPU us", "/healthz CPU us"], rows))


def charts(figures):
    rows = figures["rows"]
    return {"vending": chart.bars("Valid tokens a second", "each round", [
        (f"refresh-worker, {row['connections']} connections", row["per_second"]) for row in rows])}


def goals(figures):
    best = max(figures["rows"], key=lambda row: (row["p99_ms"] < 5) * row["per_second"])
    return [("20,000 valid tokens/s with p99 under 5 ms", f"{best['per_second']:,.0f}/s, p99 {best['p99_ms']:.1f} ms",
             best["per_second"] >= 20_000 and best["p99_ms"] < 5)]
