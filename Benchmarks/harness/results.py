"""The results of the benchmarks, one file each, with the data that is needed to repeat them."""

import datetime
import json
import os
import pathlib
import platform
import subprocess

from . import paths


def store(name, figures, started):
    paths.RESULTS.mkdir(exist_ok=True)
    record = {
        "benchmark": name,
        "command": f"Benchmarks/run {name}",
        "commit": commit(),
        "time": datetime.datetime.fromtimestamp(started, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "versions": versions(),
        "figures": figures,
    }
    (paths.RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def commit():
    """The commit that was measured, with a mark if the source differs from it."""
    name = first_line("git", "-C", paths.ROOT, "rev-parse", "--short", "HEAD")
    changed = first_line("git", "-C", paths.ROOT, "status", "--porcelain", "--", "Sources", "Package.swift")
    return name + (" with changes" if changed else "")


def machine():
    """The processor, the memory, the kernel, and the load when the benchmark ended."""
    information = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in information if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"processor": f"{os.cpu_count()} x {model}", "memory": f"{memory:.0f} GB",
            "kernel": platform.release(), "load": " ".join(f"{load:.2f}" for load in os.getloadavg())}


def versions():
    python = paths.ROOT / ".build" / "python-bench" / "bin" / "python"
    packages = {line.partition("==")[0]: line.partition("==")[2]
                for line in output(python, "-m", "pip", "freeze").splitlines()}
    by_name = {
        "swift": first_line(os.environ.get("SWIFT", "swift"), "--version"),
        "curl": debian("libcurl4"),
        "sqlite": debian("libsqlite3-0"),
        "openssl": debian("libssl3"),
        "nginx": debian("nginx"),
        "nghttp2": debian("nghttp2-client"),
        "postgresql": debian("postgresql-15"),
        "gcc": debian("gcc"),
        "go": debian("golang-go"),
        "x/oauth2": debian("golang-golang-x-oauth2-dev"),
        "go-sqlite3": debian("golang-github-mattn-go-sqlite3-dev"),
        "python": platform.python_version(),
    }
    peers = ["aiohttp", "cryptography", "google-auth", "httpx", "uvloop"]
    by_name.update({name: packages[name] for name in peers if name in packages})
    return {name: version for name, version in by_name.items() if version}


def debian(package):
    return output("dpkg-query", "--show", "--showformat=${Version}", package)


def first_line(*words):
    return output(*words).partition("\n")[0]


def output(*words):
    """The output of a program; empty if the program is missing or fails."""
    try:
        return subprocess.run([str(word) for word in words], capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""
