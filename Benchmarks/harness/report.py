"""Makes RESULTS.md and the charts from the files in Benchmarks/results."""

import json

from . import paths

HEAD = """# Results

Made by `make bench` from the figures in `Benchmarks/results/`. [README.md](README.md) describes the method, and what
prevents the goals that are missed.
"""


def table(head, rows, figures=True):
    """A table in Markdown; if it holds numbers, all columns but the first are right-aligned."""
    lines = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in [head, *rows]]
    lines.insert(1, "|---" + ("|---:" if figures else "|---") * (len(head) - 1) + "|")
    return "\n".join(lines)


def at_most(goal, value, limit, stretch=None, shown="{:.2f} times"):
    """A goal that a value must not exceed, with a stretch goal if there is one."""
    text = f"{goal}: at most {limit:,g}" + (f", stretch {stretch:,g}" if stretch else "")
    return text, shown.format(value), verdict(value <= limit, stretch and value <= stretch)


def at_least(goal, value, limit):
    """A goal that a ratio must reach."""
    return f"{goal}: at least {limit:g} times", f"{value:.2f} times", verdict(value >= limit)


def verdict(reached, stretch=None):
    """The text of the column `reached`."""
    return ("yes, and the stretch goal" if stretch else "yes") if reached else "**no**"


def compose(benchmarks):
    """Writes the page and the charts; `benchmarks` are the modules by name, in their order."""
    records = {}
    for name in benchmarks:
        file = paths.RESULTS / f"{name}.json"
        if file.exists():
            records[name] = json.loads(file.read_text())
    paths.CHARTS.mkdir(exist_ok=True)
    newest = max(records.values(), key=lambda record: record["time"])
    parts = [HEAD, "## Goals\n", goals(benchmarks, records), "\n## Machine and versions\n", machine_table(newest)]
    for name, record in records.items():
        parts += section(name, benchmarks[name], record, newest)
    (paths.BENCHMARKS / "RESULTS.md").write_text("\n".join(parts) + "\n")


def goals(benchmarks, records):
    rows = []
    for name, record in records.items():
        for goal, figure, reached in benchmarks[name].goals(record["figures"]):
            shown = verdict(reached) if isinstance(reached, bool) else reached
            rows.append([goal, figure, shown, f"[{name}](#{name})"])
    return table(["goal", "figure", "reached", "from"], rows, figures=False)


def machine_table(record):
    rows = [[name, what] for name, what in {**record["machine"], **record["versions"]}.items() if name != "load"]
    return table(["what", "which"], rows, figures=False)


def section(name, benchmark, record, newest):
    text = (f"`{record['command']}` on commit {record['commit']}, {record['time']}; load average at its end "
            f"{record['machine']['load']}.")
    shown = {**newest["machine"], **newest["versions"]}
    others = {key: value for key, value in {**record["machine"], **record["versions"]}.items()
              if key != "load" and shown.get(key) != value}
    if others:
        text += " Different from above: " + ", ".join(f"{key} {value}" for key, value in others.items()) + "."
    parts = [f"\n## {name}\n", benchmark.TITLE + ".\n", text + "\n", benchmark.tables(record["figures"])]
    for file, drawing in benchmark.charts(record["figures"]).items():
        (paths.CHARTS / f"{file}.svg").write_text(drawing)
        parts.append(f"\n![{file}](charts/{file}.svg)")
    return parts
