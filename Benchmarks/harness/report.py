"""Makes RESULTS.md and the charts from the files in Benchmarks/results."""

import json
import textwrap

from . import paths

HEAD = """# Results

Made by `make bench` from `Benchmarks/results/`, which has more figures of each run, its time and the load.
[README.md](README.md) describes the method, and what prevents the goals that are missed.
"""


def table(head, rows, figures=True):
    """A table in Markdown; if it holds numbers, all columns but the first are right-aligned."""
    lines = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in [head, *rows]]
    lines.insert(1, "|---" + ("|---:" if figures else "|---") * (len(head) - 1) + "|")
    return "\n".join(lines)


def at_most(goal, value, limit, stretch=None, shown="{:.2f} times"):
    """A goal that a value must not exceed, with a stretch goal if there is one."""
    text = f"{goal}: at most {limit:,g}" + (f", stretch {stretch:,g}" if stretch else "")
    reached = value <= limit
    return text, shown.format(value) + (", also the stretch goal" if stretch and value <= stretch else ""), reached


def at_least(goal, value, limit):
    """A goal that a ratio must reach."""
    return f"{goal}: at least {limit:g} times", f"{value:.2f} times", value >= limit


def compose(benchmarks):
    """Writes the page and the charts; `benchmarks` are the modules by name, in their order."""
    records = {}
    for name in benchmarks:
        file = paths.RESULTS / f"{name}.json"
        if file.exists():
            records[name] = json.loads(file.read_text())
    paths.CHARTS.mkdir(exist_ok=True)
    newest = max(records.values(), key=lambda record: record["time"])
    parts = [HEAD, "## Goals\n", goals(benchmarks, records), "\n## Machine and versions\n", machine(newest)]
    for name, record in records.items():
        parts += section(name, benchmarks[name], record, newest)
    (paths.BENCHMARKS / "RESULTS.md").write_text("\n".join(parts) + "\n")


def goals(benchmarks, records):
    all_goals = [goal for name, record in records.items() for goal in benchmarks[name].goals(record["figures"])]
    missed = [[goal, figure] for goal, figure, reached in all_goals if not reached]
    return (
        f"{len(all_goals) - len(missed)} of {len(all_goals)} goals are reached (the functions `goals` in `cases/`). "
        "Missed:\n\n" + table(["goal", "figure"], missed)
    )


def machine(record):
    """The machine and the versions in one sentence, wrapped as the documents are."""
    known = {**record["machine"], **record["versions"]}
    return wrap(", ".join(f"{name} {what}" for name, what in known.items() if name != "load") + ".")


def wrap(text):
    """Wraps each paragraph as the documents are, but leaves tables alone."""
    return "\n\n".join(
        part if part.startswith("|") else textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False)
        for part in text.split("\n\n")
    )


def section(name, benchmark, record, newest):
    text = f"Commit {record['commit']}, {record['time'].split()[0]}."
    shown = {**newest["machine"], **newest["versions"]}
    others = {key: value for key, value in {**record["machine"], **record["versions"]}.items()
              if key != "load" and shown.get(key) != value}
    if others:
        text += " Different from above: " + ", ".join(f"{key} {value}" for key, value in others.items()) + "."
    text = f"{benchmark.TITLE}. {text}\n\n{benchmark.tables(record['figures'])}"
    parts = [f"\n## {name}\n", wrap(text)]
    for file, drawing in benchmark.charts(record["figures"]).items():
        (paths.CHARTS / f"{file}.svg").write_text(drawing)
        parts.append(f"\n![{file}](charts/{file}.svg)")
    return parts
